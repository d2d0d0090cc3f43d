#include "model/qwen35moe/attn_layer.h"

#include <algorithm>

namespace pantheon::model {

int attention_unit_rows(std::int32_t pos, int n_threads) {
    constexpr std::int64_t kProjections = 1024;      // in keys that take as long
    constexpr std::int64_t kKeysPerThread = 80'000;  // about 10 ms
    return std::max(16, static_cast<int>(kKeysPerThread * n_threads / (kProjections + pos)));
}

void run_attention(StepContext& step, const AttentionWeights& weights, int attention_layer, int first_row,
                   kernels::ActivationRows& h, float* x) {
    const ModelConfig& config = step.config;
    const Ops& ops = step.ops;
    auto& work = step.work.attention;
    const int n_rows = h.n_rows();
    const int head_dim = config.head_dim;
    const std::int64_t qg_stride = 2 * head_dim;  // per head: the query, then the output gate

    const kernels::Product projections[] = {
        {&weights.q, work.qg.data()}, {&weights.k, work.k.data()}, {&weights.v, work.v.data()}};
    ops.linear_all(step.exec, projections, 3, h);

    // Norm before RoPE; K is cached after both, V as projected.
    ops.rms_norm(step.exec, work.qg.data(), qg_stride, weights.q_norm.data(), work.q.data(),
                 n_rows * config.n_head, head_dim, config.rms_eps);
    ops.rms_norm(step.exec, work.k.data(), head_dim, weights.k_norm.data(), work.k.data(),
                 n_rows * config.n_head_kv, head_dim, config.rms_eps);
    const kernels::RopeParams rope{config.rope_dim, config.rope_freq_base, config.rope_freq_scale,
                                   config.rope_sections};
    const std::int32_t* pos = step.batch.positions.data() + first_row;
    ops.rope(step.exec, rope, work.q.data(), pos, n_rows, config.n_head, head_dim);
    ops.rope(step.exec, rope, work.k.data(), pos, n_rows, config.n_head_kv, head_dim);

    work.runs.clear();
    for (const StepBatch::Run& run : step.batch.runs) {
        const int begin = std::max(run.first_row, first_row);
        const int end = std::min(run.first_row + run.n_rows, first_row + n_rows);
        if (begin < end)
            work.runs.push_back({begin - first_row, end - begin, run.pos + begin - run.first_row,
                                 step.slots.kv(run.slot, attention_layer)});
    }
    const int n_runs = static_cast<int>(work.runs.size());
    ops.kv_append(step.exec, work.runs.data(), n_runs, work.k.data(), work.v.data());
    ops.attention(step.exec, work.runs.data(), n_runs, work.q.data(), work.y.data(), config.n_head);
    ops.output_gate(step.exec, work.y.data(), work.qg.data() + head_dim, qg_stride, n_rows * config.n_head,
                    head_dim);
    kernels::ActivationRows y(work.y.data(), static_cast<std::int64_t>(config.n_head) * head_dim, n_rows,
                              step.work.inner_storage.data());
    ops.linear_add(step.exec, weights.output, y, step.work.mix.data(), x);
}

}  // namespace pantheon::model

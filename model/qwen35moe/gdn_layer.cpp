#include "model/qwen35moe/gdn_layer.h"

namespace pantheon::model {

void run_gdn(StepContext& step, const GdnWeights& weights, int gdn_layer, kernels::ActivationRows& h,
             float* out) {
    const ModelConfig& config = step.config;
    const Ops& ops = step.ops;
    auto& work = step.work.gdn;
    const int n_rows = h.n_rows();
    const int d = config.gdn_head_dim;
    const int n_head_v = config.gdn_n_head_v;

    ops.linear(step.exec, weights.qkv, h, work.u.data());
    ops.linear(step.exec, weights.gate, h, work.z.data());
    ops.linear(step.exec, weights.beta, h, work.b.data());
    ops.linear(step.exec, weights.alpha, h, work.alpha.data());
    // In place: b becomes beta, alpha becomes the log decay.
    ops.gdn_gates(step.exec, work.b.data(), work.alpha.data(), weights.a.data(), weights.dt.data(),
                  work.b.data(), work.alpha.data(), n_rows, n_head_v);

    work.conv_runs.clear();
    work.runs.clear();
    for (const StepBatch::Run& run : step.batch.runs) {
        work.conv_runs.push_back({run.first_row, run.n_rows, step.slots.conv_state(run.slot, gdn_layer)});
        work.runs.push_back({run.first_row, run.n_rows, step.slots.gdn_state(run.slot, gdn_layer)});
    }
    const int n_runs = static_cast<int>(work.runs.size());
    const int conv_dim = config.gdn_conv_dim();
    ops.causal_conv(step.exec, work.conv_runs.data(), n_runs, work.u.data(), weights.conv.data(),
                    work.qkv.data(), conv_dim, config.gdn_d_conv);

    // A convolved row holds all q heads, all k heads, all v heads; q and k lie side by side and are
    // normalised as one.
    float* q = work.qkv.data();
    ops.l2_norm(step.exec, q, conv_dim, n_rows, 2 * config.gdn_n_head_k, d, config.rms_eps);
    kernels::GdnInputs in;
    in.q = q;
    in.k = q + config.gdn_d_key();
    in.v = q + 2 * config.gdn_d_key();
    in.qkv_stride = conv_dim;
    in.g = work.alpha.data();
    in.beta = work.b.data();
    in.n_head_k = config.gdn_n_head_k;
    in.n_head_v = n_head_v;
    in.head_dim = d;
    ops.gated_delta_rule(step.exec, work.runs.data(), n_runs, in, work.y.data());

    ops.gated_rms_norm(step.exec, work.y.data(), work.z.data(), weights.norm.data(), n_rows * n_head_v, d,
                       config.rms_eps);
    kernels::ActivationRows y(work.y.data(), config.gdn_d_inner(), n_rows, step.work.inner_storage.data());
    ops.linear(step.exec, weights.output, y, out);
}

}  // namespace pantheon::model

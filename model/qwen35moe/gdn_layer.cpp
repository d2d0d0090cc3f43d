#include "model/qwen35moe/gdn_layer.h"

namespace pantheon::model {

void run_gdn(StepContext& step, const GdnWeights& weights, int gdn_layer, kernels::ActivationRows& h,
             float* x) {
    const ModelConfig& config = step.config;
    const Ops& ops = step.ops;
    auto& work = step.work.gdn;
    const int n_rows = h.n_rows();

    const kernels::Product projections[] = {{&weights.qkv, work.u.data()},
                                            {&weights.gate, work.z.data()},
                                            {&weights.beta, work.b.data()},
                                            {&weights.alpha, work.alpha.data()}};
    {
        const PhaseTimer timer(step.profile, Phase::gdn_projections);
        ops.linear_all(step.exec, projections, 4, h);
    }

    work.runs.clear();
    for (const StepBatch::Run& run : step.batch.runs)
        work.runs.push_back({run.first_row, run.n_rows, step.slots.conv_state(run.slot, gdn_layer),
                             step.slots.gdn_state(run.slot, gdn_layer)});
    kernels::GdnHeadsInputs in;
    in.u = work.u.data();
    in.z = work.z.data();
    in.b = work.b.data();
    in.alpha = work.alpha.data();
    in.conv = weights.conv.data();
    in.a = weights.a.data();
    in.dt = weights.dt.data();
    in.norm = weights.norm.data();
    in.n_head_k = config.gdn_n_head_k;
    in.n_head_v = config.gdn_n_head_v;
    in.head_dim = config.gdn_head_dim;
    in.d_conv = config.gdn_d_conv;
    in.eps = config.rms_eps;
    {
        const PhaseTimer timer(step.profile, Phase::gdn_heads);
        // The gates take the place of their projections.
        ops.gdn_heads(step.exec, work.runs.data(), static_cast<int>(work.runs.size()), in,
                      {work.qkv.data(), work.b.data(), work.alpha.data()}, work.y.data());
    }

    const PhaseTimer timer(step.profile, Phase::gdn_output);
    kernels::ActivationRows y(work.y.data(), config.gdn_d_inner(), n_rows, step.work.inner_storage.data());
    ops.linear_add(step.exec, weights.output, y, step.work.mix.data(), x);
}

}  // namespace pantheon::model

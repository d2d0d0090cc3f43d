#include "model/qwen35moe/moe_block.h"

namespace pantheon::model {

void run_moe(StepContext& step, const MoeWeights& weights, int layer, kernels::ActivationRows& y,
             float* out) {
    const ModelConfig& config = step.config;
    const Ops& ops = step.ops;
    auto& work = step.work.moe;
    const int n_rows = y.n_rows();
    const int n_used = config.n_expert_used;
    const int n_pairs = n_rows * n_used;

    ops.linear(step.exec, weights.router, y, work.logits.data());
    ops.router(step.exec, work.logits.data(), work.ids.data(), work.weights.data(), n_rows, config.n_expert,
               n_used);
    if (step.probe) {
        const std::size_t n = static_cast<std::size_t>(n_pairs);
        step.probe->routed(layer, {work.ids.data(), n}, {work.weights.data(), n});
    }

    const kernels::ExpertGroups groups = kernels::group_by_expert(
        work.ids.data(), n_pairs, config.n_expert, work.active.data(), work.begin.data(), work.pairs.data());
    ops.expert_linear(step.exec, weights.gate, groups, y, n_used, work.gate.data());
    ops.expert_linear(step.exec, weights.up, groups, y, n_used, work.up.data());
    ops.swiglu(step.exec, work.gate.data(), work.up.data(), work.gate.data(),
               static_cast<std::int64_t>(n_pairs) * config.n_ff_exp);
    kernels::ActivationRows hidden(work.gate.data(), config.n_ff_exp, n_pairs,
                                   step.work.inner_storage.data());
    ops.expert_linear(step.exec, weights.down, groups, hidden, 1, work.down.data());

    ops.linear(step.exec, weights.shared_router, y, work.shared_logit.data());
    ops.linear(step.exec, weights.shared_gate, y, work.shared_gate.data());
    ops.linear(step.exec, weights.shared_up, y, work.shared_up.data());
    ops.swiglu(step.exec, work.shared_gate.data(), work.shared_up.data(), work.shared_gate.data(),
               static_cast<std::int64_t>(n_rows) * config.n_ff_shexp);
    kernels::ActivationRows shared_hidden(work.shared_gate.data(), config.n_ff_shexp, n_rows,
                                          step.work.inner_storage.data());
    ops.linear(step.exec, weights.shared_down, shared_hidden, work.shared.data());

    ops.moe_combine(step.exec, work.down.data(), work.weights.data(), work.shared.data(),
                    work.shared_logit.data(), out, n_rows, n_used, config.n_embd);
}

}  // namespace pantheon::model

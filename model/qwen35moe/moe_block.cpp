#include "model/qwen35moe/moe_block.h"

namespace pantheon::model {

void run_moe(StepContext& step, const MoeWeights& weights, int layer, kernels::ActivationRows& y, float* x) {
    const ModelConfig& config = step.config;
    const Ops& ops = step.ops;
    auto& work = step.work.moe;
    const int n_rows = y.n_rows();
    const int n_used = config.n_expert_used;
    const int n_pairs = n_rows * n_used;

    kernels::ExpertGroups groups;
    kernels::ExpertTasks tasks;
    {
        const PhaseTimer timer(step.profile, Phase::moe_router);
        const kernels::Product products[] = {{&weights.router, work.logits.data()},
                                             {&weights.shared_router, work.shared_logit.data()}};
        ops.linear_all(step.exec, products, 2, y);
        ops.router(step.exec, work.logits.data(), work.ids.data(), work.weights.data(), n_rows,
                   config.n_expert, n_used);
        groups = kernels::group_by_expert(work.ids.data(), n_pairs, config.n_expert, work.active.data(),
                                          work.begin.data(), work.pairs.data());
        tasks = {work.tasks.data(), kernels::plan_expert_tasks(groups, n_rows, work.tasks.data()),
                 work.counters.get()};
    }
    if (step.probe) {
        const std::size_t n = static_cast<std::size_t>(n_pairs);
        step.probe->routed(layer, {work.ids.data(), n}, {work.weights.data(), n});
    }

    kernels::ExpertFfn ffn;
    ffn.gate = &weights.gate, ffn.up = &weights.up, ffn.down = &weights.down;
    ffn.shared_gate = &weights.shared_gate, ffn.shared_up = &weights.shared_up;
    ffn.shared_down = &weights.shared_down;
    ffn.pairs = groups.pairs;
    ffn.n_rows = n_rows;
    ffn.n_used = n_used;
    kernels::ActivationRows hidden(work.hidden.data(), config.n_ff_exp, n_pairs,
                                   step.work.inner_storage.data());
    kernels::ActivationRows shared_hidden(work.shared_hidden.data(), config.n_ff_shexp, n_rows,
                                          step.work.shared_storage.data());
    {
        const PhaseTimer timer(step.profile, Phase::moe_hidden);
        ops.expert_hidden(step.exec, ffn, groups, tasks, y,
                          {work.hidden.data(), work.up.data(), work.shared_hidden.data(),
                           work.shared_up.data(), &hidden, &shared_hidden});
    }
    const PhaseTimer timer(step.profile, Phase::moe_output);
    kernels::ExpertOutputArgs args;
    args.hidden = &hidden, args.shared_hidden = &shared_hidden;
    args.weights = work.weights.data(), args.shared_gate = work.shared_logit.data();
    args.down = work.down.data(), args.shared = work.shared.data(), args.mix = step.work.mix.data();
    ops.expert_output(step.exec, ffn, groups, tasks, args, x);
}

}  // namespace pantheon::model

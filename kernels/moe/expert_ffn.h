// The experts of a step, the shared one among them: two passes over their weights.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "kernels/exec/exec.h"
#include "kernels/linear/activation_rows.h"
#include "kernels/linear/weight_matrix.h"
#include "kernels/moe/expert_linear.h"

namespace pantheon::kernels {

/// Some rows of the step that meet the same expert: pairs[begin … end) of the groups, or rows begin … end − 1
/// where the expert is the shared one. At most kMaxRows of them, so that many threads find work whatever the
/// router does.
struct ExpertTask {
    static constexpr int kMaxRows = 64;
    static constexpr std::int32_t kShared = -1;
    std::int32_t expert = kShared;
    std::int32_t begin = 0, end = 0;
};

/// The tasks of both passes and the counters that a pass needs.
struct ExpertTasks {
    const ExpertTask* tasks = nullptr;
    int n = 0;
    std::atomic<std::int32_t>* counters = nullptr;  // [expert_counters(n, n_embd, n_ff)]
};
int max_expert_tasks(int n_rows, int n_used, int n_expert);
std::size_t expert_counters(int n_tasks, std::int64_t n_embd, std::int64_t n_ff);

/// Shared expert first. tasks [max_expert_tasks(...)] is written; returns how many.
int plan_expert_tasks(const ExpertGroups& groups, int n_rows, ExpertTask* tasks);

struct ExpertFfn {
    const ExpertMatrices *gate = nullptr, *up = nullptr, *down = nullptr;
    const WeightMatrix *shared_gate = nullptr, *shared_up = nullptr, *shared_down = nullptr;
    const std::int32_t* pairs = nullptr;  // of the groups
    int n_rows = 0;
    int n_used = 0;
};

/// hidden[p] = silu(gate x) · (up x), gate and up of pair p's expert, x row p / n_used; shared_hidden[r]
/// likewise x               n_rows rows of n_embd values hidden          f32 [n_rows · n_used, n_ff], the
/// values behind `routed` shared_hidden   f32 [n_rows, n_ff_shexp], the values behind `shared` up, shared_up
/// as hidden and shared_hidden, working memory On return cpu has quantised routed and shared as the down
/// projections want them. Precision, independence of rows and scratch as in Linear and Swiglu.
struct ExpertHiddenOut {
    float *hidden = nullptr, *up = nullptr;
    float *shared_hidden = nullptr, *shared_up = nullptr;
    ActivationRows *routed = nullptr, *shared = nullptr;  // of hidden and shared_hidden
};
using ExpertHidden = void(Exec& exec, const ExpertFfn& ffn, const ExpertGroups& groups,
                          const ExpertTasks& tasks, ActivationRows& x, const ExpertHiddenOut& out);
ExpertHidden expert_hidden_ref, expert_hidden_cpu;

/// x[r] ← x[r] + what MoeCombine makes of the experts' down projections.
/// weights       f32 [n_rows, n_used]    shared_gate   f32 [n_rows]    x   f32 [n_rows, n_embd]
/// down, shared, mix   f32 [n_rows · n_used, n_embd], [n_rows, n_embd] twice, working memory
struct ExpertOutputArgs {
    ActivationRows *hidden = nullptr, *shared_hidden = nullptr;
    const float *weights = nullptr, *shared_gate = nullptr;
    float *down = nullptr, *shared = nullptr, *mix = nullptr;
};
using ExpertOutput = void(Exec& exec, const ExpertFfn& ffn, const ExpertGroups& groups,
                          const ExpertTasks& tasks, const ExpertOutputArgs& args, float* x);
ExpertOutput expert_output_ref, expert_output_cpu;

}  // namespace pantheon::kernels

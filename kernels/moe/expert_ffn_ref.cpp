#include "kernels/linear/add_rows.h"
#include "kernels/linear/linear.h"
#include "kernels/moe/expert_ffn.h"
#include "kernels/moe/moe_combine.h"
#include "kernels/moe/swiglu.h"

namespace pantheon::kernels {

void expert_hidden_ref(Exec& exec, const ExpertFfn& ffn, const ExpertGroups& groups, const ExpertTasks&,
                       ActivationRows& x, const ExpertHiddenOut& out) {
    expert_linear_ref(exec, *ffn.gate, groups, x, ffn.n_used, out.hidden);
    expert_linear_ref(exec, *ffn.up, groups, x, ffn.n_used, out.up);
    swiglu_ref(exec, out.hidden, out.up, out.hidden,
               static_cast<std::int64_t>(ffn.n_rows) * ffn.n_used * ffn.gate->first.n_out);
    linear_ref(exec, *ffn.shared_gate, x, out.shared_hidden);
    linear_ref(exec, *ffn.shared_up, x, out.shared_up);
    swiglu_ref(exec, out.shared_hidden, out.shared_up, out.shared_hidden,
               ffn.n_rows * ffn.shared_gate->n_out);
}

void expert_output_ref(Exec& exec, const ExpertFfn& ffn, const ExpertGroups& groups, const ExpertTasks&,
                       const ExpertOutputArgs& args, float* x) {
    const std::int64_t n_embd = ffn.shared_down->n_out;
    expert_linear_ref(exec, *ffn.down, groups, *args.hidden, 1, args.down);
    linear_ref(exec, *ffn.shared_down, *args.shared_hidden, args.shared);
    moe_combine_ref(exec, args.down, args.weights, args.shared, args.shared_gate, args.mix, ffn.n_rows,
                    ffn.n_used, static_cast<int>(n_embd));
    add_rows_ref(exec, x, args.mix, ffn.n_rows * n_embd);
}

}  // namespace pantheon::kernels

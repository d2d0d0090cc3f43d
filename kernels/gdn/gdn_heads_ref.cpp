#include "kernels/gdn/causal_conv.h"
#include "kernels/gdn/gated_rms_norm.h"
#include "kernels/gdn/gdn_gates.h"
#include "kernels/gdn/gdn_heads.h"
#include "kernels/norm/l2_norm.h"

namespace pantheon::kernels {

void gdn_heads_ref(Exec& exec, const GdnHeadsRun* runs, int n_runs, const GdnHeadsInputs& in,
                   const GdnHeadsWork& work, float* y) {
    const int conv_dim = in.conv_dim();
    const std::int64_t d_key = static_cast<std::int64_t>(in.n_head_k) * in.head_dim;
    for (int s = 0; s < n_runs; ++s) {
        const GdnHeadsRun& run = runs[s];
        const std::int64_t gate = static_cast<std::int64_t>(run.first_row) * in.n_head_v;
        gdn_gates_ref(exec, in.b + gate, in.alpha + gate, in.a, in.dt, work.beta + gate, work.g + gate,
                      run.n_rows, in.n_head_v);
        const ConvRun conv_run{run.first_row, run.n_rows, run.conv_state};
        causal_conv_ref(exec, &conv_run, 1, in.u, in.conv, work.qkv, conv_dim, in.d_conv);

        // A convolved row holds all q heads, all k heads, all v heads; q and k lie side by side and are
        // normalised as one.
        float* q = work.qkv;
        l2_norm_ref(exec, q + static_cast<std::int64_t>(run.first_row) * conv_dim, conv_dim, run.n_rows,
                    2 * in.n_head_k, in.head_dim, in.eps);
        GdnInputs rule;
        rule.q = q;
        rule.k = q + d_key;
        rule.v = q + 2 * d_key;
        rule.qkv_stride = conv_dim;
        rule.g = work.g;
        rule.beta = work.beta;
        rule.n_head_k = in.n_head_k;
        rule.n_head_v = in.n_head_v;
        rule.head_dim = in.head_dim;
        const GdnRun rule_run{run.first_row, run.n_rows, run.state};
        gated_delta_rule_ref(exec, &rule_run, 1, rule, y);
        gated_rms_norm_ref(exec, y + gate * in.head_dim, in.z + gate * in.head_dim, in.norm,
                           run.n_rows * in.n_head_v, in.head_dim, in.eps);
    }
}

}  // namespace pantheon::kernels

#include "kernels/gdn/gated_delta_rule.h"

#include <algorithm>

#include "kernels/cpu/leaves.h"

namespace pantheon::kernels {
namespace {

// State rows that one thread carries over all tokens of a run: 16 rows of 128 values stay in the first cache.
constexpr int kRowsPerItem = DeltaRuleSlice::kMaxRows;
constexpr int kTokensAtOnce = 64;

}  // namespace

void gated_delta_rule_cpu(Exec& exec, const GdnRun* runs, int n_runs, const GdnInputs& in, float* y) {
    const Leaves& leaves = cpu_leaves(exec.isa());
    const int d = in.head_dim;
    const std::int64_t n_parts = (d + kRowsPerItem - 1) / kRowsPerItem;
    const std::int64_t n_items = n_runs * in.n_head_v * n_parts;
    exec.team().parallel_for(n_items, n_parts, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t item = begin; item < end; ++item) {
            const GdnRun& run = runs[item / n_parts / in.n_head_v];
            const int v_head = static_cast<int>(item / n_parts % in.n_head_v);
            const int first = static_cast<int>(item % n_parts) * kRowsPerItem;
            // Interleaved pairing. Blocked pairing, v_head / (n_head_v / n_head_k), gives fluent but wrong
            // text.
            const int k_head = v_head % in.n_head_k;
            DeltaRuleToken tokens[kTokensAtOnce];
            for (int t = 0; t < run.n_rows; t += kTokensAtOnce) {
                const std::int64_t token = (run.first_row + t) * in.qkv_stride;
                const std::int64_t gate = static_cast<std::int64_t>(run.first_row + t) * in.n_head_v + v_head;
                DeltaRuleSlice slice;
                slice.state = run.state.row(v_head, first);
                slice.n_rows = std::min(kRowsPerItem, d - first);
                slice.head_dim = d;
                slice.n_tokens = std::min(kTokensAtOnce, run.n_rows - t);
                slice.q = in.q + token + static_cast<std::int64_t>(k_head) * d;
                slice.k = in.k + token + static_cast<std::int64_t>(k_head) * d;
                slice.v = in.v + token + static_cast<std::int64_t>(v_head) * d + first;
                slice.qkv_stride = in.qkv_stride;
                slice.tokens = tokens;
                slice.y = y + gate * d + first;
                slice.y_stride = static_cast<std::int64_t>(in.n_head_v) * d;
                leaves.delta_rule_tokens(slice.q, slice.k, in.qkv_stride, d, in.g + gate, in.beta + gate,
                                         in.n_head_v, slice.n_tokens, tokens);
                leaves.delta_rule(slice);
            }
        }
    });
}

}  // namespace pantheon::kernels

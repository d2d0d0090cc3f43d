#include "kernels/gdn/gated_delta_rule.h"

#include <cmath>

#include "kernels/exec/ref_math.h"

namespace pantheon::kernels {
namespace {

/// One token, one V head. Rows of the stored state belong to value dimensions and do not meet.
void advance(const GdnState& state, int v_head, const float* q, const float* k, const float* v, float g,
             float beta, float* y) {
    const int d = state.head_dim;
    const float decay = static_cast<float>(std::exp(static_cast<double>(g)));
    const double scale = 1.0 / std::sqrt(static_cast<double>(d));
    for (int j = 0; j < d; ++j) {
        float* row = state.row(v_head, j);
        for (int i = 0; i < d; ++i) row[i] *= decay;
        const double prediction = ref::dot(row, k, d);
        const float delta = static_cast<float>(beta * (v[j] - prediction));
        for (int i = 0; i < d; ++i) row[i] += k[i] * delta;
        y[j] = static_cast<float>(ref::dot(row, q, d) * scale);
    }
}

}  // namespace

void gated_delta_rule_ref(Exec& exec, const GdnRun* runs, int n_runs, const GdnInputs& in, float* y) {
    const int d = in.head_dim;
    exec.team().parallel_for(
        static_cast<std::int64_t>(n_runs) * in.n_head_v, 1, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t item = begin; item < end; ++item) {
                const GdnRun& run = runs[item / in.n_head_v];
                const int v_head = static_cast<int>(item % in.n_head_v);
                // Interleaved pairing. Blocked pairing, v_head / (n_head_v / n_head_k), gives fluent but
                // wrong text.
                const int k_head = v_head % in.n_head_k;
                for (std::int64_t t = run.first_row; t < run.first_row + run.n_rows; ++t) {
                    const std::int64_t qk = t * in.qkv_stride + static_cast<std::int64_t>(k_head) * d;
                    const std::int64_t vv = t * in.qkv_stride + static_cast<std::int64_t>(v_head) * d;
                    const std::int64_t gate = t * in.n_head_v + v_head;
                    advance(run.state, v_head, in.q + qk, in.k + qk, in.v + vv, in.g[gate], in.beta[gate],
                            y + gate * d);
                }
            }
        });
}

}  // namespace pantheon::kernels

#include "kernels/gdn/gdn_gates.h"

#include <cstdint>

#include "kernels/exec/ref_math.h"

namespace pantheon::kernels {

void gdn_gates_ref(Exec& exec, const float* b, const float* alpha, const float* a, const float* dt,
                   float* beta, float* g, int n_tokens, int n_head_v) {
    exec.team().parallel_for(n_tokens, 16, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t t = begin; t < end; ++t)
            for (int h = 0; h < n_head_v; ++h) {
                const std::int64_t i = t * n_head_v + h;
                beta[i] = static_cast<float>(ref::sigmoid(b[i]));
                g[i] = static_cast<float>(a[h] * ref::softplus(static_cast<double>(alpha[i]) + dt[h]));
            }
    });
}

}  // namespace pantheon::kernels

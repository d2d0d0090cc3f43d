#include "kernels/norm/l2_norm.h"

#include <algorithm>
#include <cmath>

#include "kernels/exec/ref_math.h"

namespace pantheon::kernels {

void l2_norm_ref(Exec& exec, float* x, std::int64_t token_stride, int n_tokens, int n_heads, int head_dim,
                 float eps) {
    exec.team().parallel_for(n_tokens, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t t = begin; t < end; ++t) {
            for (int h = 0; h < n_heads; ++h) {
                float* head = x + t * token_stride + static_cast<std::int64_t>(h) * head_dim;
                const double norm =
                    std::max(std::sqrt(ref::dot(head, head, head_dim)), static_cast<double>(eps));
                for (int i = 0; i < head_dim; ++i) head[i] = static_cast<float>(head[i] / norm);
            }
        }
    });
}

}  // namespace pantheon::kernels

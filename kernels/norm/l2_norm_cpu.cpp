#include "kernels/cpu/leaves.h"
#include "kernels/norm/l2_norm.h"

namespace pantheon::kernels {

void l2_norm_cpu(Exec& exec, float* x, std::int64_t token_stride, int n_tokens, int n_heads, int head_dim,
                 float eps) {
    const Leaves& leaves = cpu_leaves(exec.isa());
    exec.team().parallel_for(n_tokens, 4, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t t = begin; t < end; ++t)
            for (int h = 0; h < n_heads; ++h)
                leaves.l2_norm(x + t * token_stride + static_cast<std::int64_t>(h) * head_dim, head_dim, eps);
    });
}

}  // namespace pantheon::kernels

#include "kernels/cpu/leaves.h"
#include "kernels/gdn/gated_rms_norm.h"

namespace pantheon::kernels {

void gated_rms_norm_cpu(Exec& exec, float* y, const float* z, const float* w, int n_rows, int head_dim,
                        float eps) {
    const Leaves& leaves = cpu_leaves(exec.isa());
    exec.team().parallel_for(n_rows, 32, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r)
            leaves.gated_rms_norm(y + r * head_dim, z + r * head_dim, w, head_dim, eps);
    });
}

}  // namespace pantheon::kernels

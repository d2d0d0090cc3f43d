#include "kernels/cpu/leaves.h"
#include "kernels/norm/rms_norm.h"

namespace pantheon::kernels {

void rms_norm_cpu(Exec& exec, const float* x, std::int64_t x_stride, const float* w, float* y, int n_rows,
                  int n, float eps) {
    const Leaves& leaves = cpu_leaves(exec.isa());
    exec.team().parallel_for(n_rows, 16, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) leaves.rms_norm(x + r * x_stride, w, y + r * n, n, eps);
    });
}

}  // namespace pantheon::kernels

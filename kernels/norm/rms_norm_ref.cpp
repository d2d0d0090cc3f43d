#include "kernels/norm/rms_norm.h"

#include "kernels/exec/ref_math.h"

namespace pantheon::kernels {

void rms_norm_ref(Exec& exec, const float* x, std::int64_t x_stride, const float* w, float* y, int n_rows,
                  int n, float eps) {
    exec.team().parallel_for(n_rows, 4, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) {
            const float* in = x + r * x_stride;
            float* out = y + r * n;
            const double scale = ref::inverse_rms(in, n, eps);
            for (int i = 0; i < n; ++i) out[i] = static_cast<float>(in[i] * scale * w[i]);
        }
    });
}

}  // namespace pantheon::kernels

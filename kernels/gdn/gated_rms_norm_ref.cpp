#include "kernels/gdn/gated_rms_norm.h"

#include <cstdint>

#include "kernels/exec/ref_math.h"

namespace pantheon::kernels {

void gated_rms_norm_ref(Exec& exec, float* y, const float* z, const float* w, int n_rows, int head_dim,
                        float eps) {
    exec.team().parallel_for(n_rows, 8, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) {
            float* head = y + r * head_dim;
            const double scale = ref::inverse_rms(head, head_dim, eps);
            for (int i = 0; i < head_dim; ++i)
                head[i] = static_cast<float>(head[i] * scale * w[i] * ref::silu(z[r * head_dim + i]));
        }
    });
}

}  // namespace pantheon::kernels

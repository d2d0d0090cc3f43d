#include "kernels/moe/moe_combine.h"

#include <cstdint>

#include "kernels/exec/ref_math.h"

namespace pantheon::kernels {

void moe_combine_ref(Exec& exec, const float* routed, const float* weights, const float* shared,
                     const float* shared_gate, float* y, int n_rows, int n_used, int n) {
    exec.team().parallel_for(n_rows, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) {
            const double gate = ref::sigmoid(shared_gate[r]);
            for (int i = 0; i < n; ++i) {
                double sum = 0;
                for (int j = 0; j < n_used; ++j)
                    sum += static_cast<double>(weights[r * n_used + j]) * routed[(r * n_used + j) * n + i];
                sum += gate * shared[r * n + i];
                y[r * n + i] = static_cast<float>(sum);
            }
        }
    });
}

}  // namespace pantheon::kernels

#include "kernels/attention/output_gate.h"

#include "kernels/exec/ref_math.h"

namespace pantheon::kernels {

void output_gate_ref(Exec& exec, float* y, const float* gate, std::int64_t gate_stride, int n_rows,
                     int head_dim) {
    exec.team().parallel_for(n_rows, 8, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r)
            for (int i = 0; i < head_dim; ++i) {
                float& value = y[r * head_dim + i];
                value = static_cast<float>(value * ref::sigmoid(gate[r * gate_stride + i]));
            }
    });
}

}  // namespace pantheon::kernels

#include "kernels/moe/swiglu.h"

#include "kernels/exec/ref_math.h"

namespace pantheon::kernels {

void swiglu_ref(Exec& exec, const float* gate, const float* up, float* y, std::int64_t n) {
    exec.team().parallel_for(n, 2048, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) y[i] = static_cast<float>(ref::silu(gate[i]) * up[i]);
    });
}

}  // namespace pantheon::kernels

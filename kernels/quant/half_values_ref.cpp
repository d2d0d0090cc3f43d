#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/quant/dequantize.h"
#include "kernels/quant/half_values.h"

namespace pantheon::kernels {

void narrow_to_half_ref(Exec& exec, const float* x, std::uint16_t* y, std::int64_t n) {
    exec.team().parallel_for(n, 4096, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i)
            y[i] = float_to_half(std::isfinite(x[i]) ? std::clamp(x[i], -kLargestHalf, kLargestHalf)
                                                     : std::numeric_limits<float>::quiet_NaN());
    });
}

void widen_half_ref(Exec& exec, const std::uint16_t* x, float* y, std::int64_t n) {
    exec.team().parallel_for(n, 4096, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) y[i] = half_to_float(x[i]);
    });
}

}  // namespace pantheon::kernels

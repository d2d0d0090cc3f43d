// Exact expansion of quantised rows to f32.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/quant/weight_type.h"

namespace pantheon::kernels {

/// y[e] = the value of element e of the row at src, by the formulas of the format, each product and sum in
/// f32 in the order in which the format's reference writes them. src   bytes of one row, no alignment assumed
/// n   a multiple of the type's block_elems type  a supported one (WeightTypeInfo::is_supported)
void dequantize_row(WeightType type, const std::byte* src, float* y, std::int64_t n);

/// IEEE half to float, exact; float to half, round half to even.
float half_to_float(std::uint16_t h);
std::uint16_t float_to_half(float f);
constexpr float kLargestHalf = 65504.0f;

}  // namespace pantheon::kernels

// Arrays between f32 and IEEE half, for what is put aside in half the bytes.
#pragma once

#include <cstdint>

#include "kernels/exec/exec.h"
#include "kernels/quant/dequantize.h"

namespace pantheon::kernels {

/// y[i] = x[i] as a half, rounded half to even; a finite value beyond ±kLargestHalf becomes that, and what is
/// not finite becomes NaN, so that nothing becomes infinite and nothing broken looks whole.
/// x   f32 [n]    y   half [n], must not overlap x. Scratch: none.
using NarrowToHalf = void(Exec& exec, const float* x, std::uint16_t* y, std::int64_t n);
NarrowToHalf narrow_to_half_ref, narrow_to_half_cpu;

/// y[i] = x[i], exact. x   half [n]    y   f32 [n], must not overlap x. Scratch: none.
using WidenHalf = void(Exec& exec, const std::uint16_t* x, float* y, std::int64_t n);
WidenHalf widen_half_ref, widen_half_cpu;

}  // namespace pantheon::kernels

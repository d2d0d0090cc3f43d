// The activation of the experts.
#pragma once

#include <cstdint>

#include "kernels/exec/exec.h"

namespace pantheon::kernels {

/// y[i] = silu(gate[i]) · up[i] for n values. y may be gate or up. Scratch: none.
using Swiglu = void(Exec& exec, const float* gate, const float* up, float* y, std::int64_t n);
Swiglu swiglu_ref, swiglu_cpu;

}  // namespace pantheon::kernels

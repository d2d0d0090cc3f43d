// The residual connection.
#pragma once

#include <cstdint>

#include "kernels/exec/exec.h"

namespace pantheon::kernels {

/// x[i] ← x[i] + y[i] for n values. x and y must not overlap. Scratch: none.
using AddRows = void(Exec& exec, float* x, const float* y, std::int64_t n);
AddRows add_rows_ref;

}  // namespace pantheon::kernels

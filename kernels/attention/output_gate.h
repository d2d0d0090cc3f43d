// The gate on the output of each attention head.
#pragma once

#include <cstdint>

#include "kernels/exec/exec.h"

namespace pantheon::kernels {

/// y[r][i] ← y[r][i] · sigmoid(gate[r][i]), r over tokens and heads. In place.
/// y      f32 [n_rows, head_dim]    gate   f32 [n_rows, head_dim], rows gate_stride floats apart
/// Scratch: none.
using OutputGate = void(Exec& exec, float* y, const float* gate, std::int64_t gate_stride, int n_rows,
                        int head_dim);
OutputGate output_gate_ref, output_gate_cpu;

}  // namespace pantheon::kernels

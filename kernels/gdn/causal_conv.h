// The short causal convolution in front of the gated delta rule.
#pragma once

#include "kernels/exec/exec.h"

namespace pantheon::kernels {

/// Rows first_row … first_row + n_rows − 1 of a step continue the sequence whose state this is. n_rows ≥ 1.
struct ConvRun {
    int first_row = 0;
    int n_rows = 0;
    float* state = nullptr;  // f32 [n_channels, d_conv − 1]: the last inputs u, raw, oldest first; updated
};

/// Per channel c, over the sequence of inputs u (state first, then the run's rows):
///   y_t[c] = silu( Σ_{j < d_conv} w[c][j] · u_{t − (d_conv − 1) + j}[c] )      tap 0 meets the oldest input
/// u, y   f32 [n_rows, n_channels]; must not overlap     w   f32 [n_channels, d_conv]     d_conv ≥ 2
/// The state keeps inputs as they came, before convolution and SiLU. Scratch: none.
using CausalConv = void(Exec& exec, const ConvRun* runs, int n_runs, const float* u, const float* w, float* y,
                        int n_channels, int d_conv);
CausalConv causal_conv_ref, causal_conv_cpu;

}  // namespace pantheon::kernels

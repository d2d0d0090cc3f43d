// The norm at the end of a Gated-Delta-Net layer: normalise each head, then gate it.
#pragma once

#include "kernels/exec/exec.h"

namespace pantheon::kernels {

/// y[r][i] ← y[r][i] / sqrt(mean_i(y[r][i]²) + eps) · w[i] · silu(z[r][i]), r over tokens and V heads. In
/// place. y, z   f32 [n_rows, head_dim]    w   f32 [head_dim], shared by all heads, used as stored The sum of
/// squares is accumulated in f64. Scratch: none.
using GatedRmsNorm = void(Exec& exec, float* y, const float* z, const float* w, int n_rows, int head_dim,
                          float eps);
GatedRmsNorm gated_rms_norm_ref, gated_rms_norm_cpu;

}  // namespace pantheon::kernels

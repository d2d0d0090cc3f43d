// Root-mean-square normalisation of rows.
#pragma once

#include <cstdint>

#include "kernels/exec/exec.h"

namespace pantheon::kernels {

/// y[r][i] = x[r][i] / sqrt(mean_i(x[r][i]²) + eps) · w[i]
/// x     f32 [n_rows, n], rows x_stride ≥ n floats apart    y   f32 [n_rows, n] dense; may be x if x_stride
/// == n w     f32 [n], used as stored (nothing is added to it) eps   > 0, inside the root The sum of squares
/// is accumulated in f64. Scratch: none.
using RmsNorm = void(Exec& exec, const float* x, std::int64_t x_stride, const float* w, float* y, int n_rows,
                     int n, float eps);
RmsNorm rms_norm_ref, rms_norm_cpu;

}  // namespace pantheon::kernels

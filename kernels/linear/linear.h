// Matrix times rows: the one op through which nearly all weights stream.
#pragma once

#include <cstddef>

#include "kernels/exec/exec.h"
#include "kernels/linear/weight_matrix.h"

namespace pantheon::kernels {

/// y[r][o] = Σ_i w[o][i] · x[r][i]
/// w   any supported type    x   f32 [n_rows, w.n_in]    y   f32 [n_rows, w.n_out]; must not overlap x
/// ref: each weight is expanded to f32, each sum is taken in f64 and rounded once; a weight row is expanded
/// once for all n_rows. Row r of y depends on row r of x only, bit for bit. Scratch:
/// linear_scratch_bytes(w.n_in).
using Linear = void(Exec& exec, const WeightMatrix& w, const float* x, float* y, int n_rows);
Linear linear_ref;

/// Per thread: one expanded weight row.
inline std::size_t linear_scratch_bytes(std::int64_t n_in) {
    return static_cast<std::size_t>(n_in) * sizeof(float);
}

}  // namespace pantheon::kernels

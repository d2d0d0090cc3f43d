// Matrix times rows: the one op through which nearly all weights stream.
#pragma once

#include <cstddef>

#include "kernels/exec/exec.h"
#include "kernels/linear/activation_rows.h"
#include "kernels/linear/weight_matrix.h"

namespace pantheon::kernels {

/// y[r][o] = Σ_i w[o][i] · x[r][i]
/// w   any supported type    x   rows of w.n_in values    y   f32 [x.n_rows(), w.n_out]; must not overlap x
/// Row r of y depends on row r of x only, bit for bit.
/// ref: each weight is expanded to f32, x is taken as it is, each sum is taken in f64 and rounded once.
/// Scratch: linear_scratch_bytes(w.n_in).
/// cpu: weights in blocks of 256 or 32 meet x in int8 blocks of the same width, float weights meet it in f32;
/// the order of the sums is that of DotRows (kernels/cpu/leaves.h). Scratch: none.
using Linear = void(Exec& exec, const WeightMatrix& w, ActivationRows& x, float* y);
Linear linear_ref, linear_cpu;

/// Several products of the same input.
struct Product {
    const WeightMatrix* w = nullptr;
    float* y = nullptr;
};
constexpr int kMaxProducts = 4;
/// Linear for each of up to kMaxProducts products; cpu: as one pass over all their rows.
using LinearAll = void(Exec& exec, const Product* products, int n_products, ActivationRows& x);
LinearAll linear_all_ref, linear_all_cpu;

/// sum[r][o] ← sum[r][o] + y[r][o], y as Linear leaves it. Scratch: as Linear.
using LinearAdd = void(Exec& exec, const WeightMatrix& w, ActivationRows& x, float* y, float* sum);
LinearAdd linear_add_ref, linear_add_cpu;

/// Per thread: one expanded weight row.
inline std::size_t linear_scratch_bytes(std::int64_t n_in) {
    return static_cast<std::size_t>(n_in) * sizeof(float);
}

}  // namespace pantheon::kernels

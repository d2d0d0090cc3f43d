// Euclidean normalisation of the heads of a row.
#pragma once

#include <cstdint>

#include "kernels/exec/exec.h"

namespace pantheon::kernels {

/// x[t][h][i] ← x[t][h][i] / max(sqrt(Σ_i x[t][h][i]²), eps): the sum, not the mean. In place.
/// x     f32 [n_tokens, n_heads, head_dim], tokens token_stride ≥ n_heads·head_dim floats apart; what lies
/// between
///       two tokens is left alone
/// The sum of squares is accumulated in f64. Scratch: none.
using L2Norm = void(Exec& exec, float* x, std::int64_t token_stride, int n_tokens, int n_heads, int head_dim,
                    float eps);
L2Norm l2_norm_ref, l2_norm_cpu;

}  // namespace pantheon::kernels

// Adds up what the experts of a token said.
#pragma once

#include "kernels/exec/exec.h"

namespace pantheon::kernels {

/// y[r][i] = Σ_j weights[r][j] · routed[r][j][i]  +  sigmoid(shared_gate[r]) · shared[r][i]
/// j ascending, which is descending probability, then the shared expert.
/// routed   f32 [n_rows, n_used, n]    weights   f32 [n_rows, n_used]
/// shared   f32 [n_rows, n]    shared_gate   f32 [n_rows]    y   f32 [n_rows, n]; must not overlap the inputs
/// ref: summed in f64. cpu: fused multiply-adds in f32, in that order. Scratch: none.
using MoeCombine = void(Exec& exec, const float* routed, const float* weights, const float* shared,
                        const float* shared_gate, float* y, int n_rows, int n_used, int n);
MoeCombine moe_combine_ref, moe_combine_cpu;

}  // namespace pantheon::kernels

// Chooses the experts of each token and their weights.
#pragma once

#include <cstdint>

#include "kernels/exec/exec.h"

namespace pantheon::kernels {

/// p = softmax of a row of logits over all experts; the n_used most likely are picked, in descending order,
/// ties to the lower index; weight = p / max(Σ of the picked p, 2⁻¹⁴). logits    f32 [n_rows, n_expert] ids
/// i32 [n_rows, n_used], distinct, each in 0 … n_expert − 1 whatever the logits hold (NaN included) weights
/// f32 [n_rows, n_used]            1 ≤ n_used ≤ n_expert ref: softmax in f64.
/// cpu: exponentials in f32, their sums in f64. Scratch: none.
using Router = void(Exec& exec, const float* logits, std::int32_t* ids, float* weights, int n_rows,
                    int n_expert, int n_used);
Router router_ref, router_cpu;

}  // namespace pantheon::kernels

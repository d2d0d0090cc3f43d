// The recurrence of a Gated-Delta-Net layer.
#pragma once

#include <cstdint>

#include "kernels/exec/exec.h"

namespace pantheon::kernels {

/// The state of one layer: f32 [n_head_v, head_dim (v), head_dim (k)], S stored transposed with k contiguous.
struct GdnState {
    float* data = nullptr;
    int head_dim = 0;

    float* row(int v_head, int v) const {
        return data + (static_cast<std::int64_t>(v_head) * head_dim + v) * head_dim;
    }
    float& at(int v_head, int v, int k) const { return row(v_head, v)[k]; }
};

/// Rows first_row … first_row + n_rows − 1 of a step continue the sequence whose state this is.
struct GdnRun {
    int first_row = 0;
    int n_rows = 0;
    GdnState state;  // updated
};

struct GdnInputs {
    const float* q = nullptr;     // f32 [n_rows, n_head_k, head_dim], L2-normalised
    const float* k = nullptr;     // as q
    const float* v = nullptr;     // f32 [n_rows, n_head_v, head_dim]
    std::int64_t qkv_stride = 0;  // floats between the tokens of q, k and v
    const float* g = nullptr;     // f32 [n_rows, n_head_v], log decay ≤ 0
    const float* beta = nullptr;  // f32 [n_rows, n_head_v], in (0, 1)
    int n_head_k = 0;
    int n_head_v = 0;  // a multiple of n_head_k
    int head_dim = 0;  // of q, k and v
};

/// Advances the state S[k][v] of each V head token by token and reads it out after the write:
///   S ← exp(g) S;   S ← S + k ⊗ beta (v − Sᵀk);   y = Sᵀq / sqrt(head_dim)
/// V head h reads K head h mod n_head_k (interleaved).
/// y   f32 [n_rows, n_head_v, head_dim]; must not overlap the inputs
/// Token by token, in one order of operations however the tokens are cut into runs; S is kept in f32.
/// ref: every element is rounded after the decay and after the write; Sᵀk and Sᵀq are summed in f64.
/// cpu: f32 sums, and y from the state before the write: exp(g) Sᵀq + (k·q) delta. Scratch: none.
using GatedDeltaRule = void(Exec& exec, const GdnRun* runs, int n_runs, const GdnInputs& in, float* y);
GatedDeltaRule gated_delta_rule_ref, gated_delta_rule_cpu;

}  // namespace pantheon::kernels

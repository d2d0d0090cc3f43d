// Everything between the projections of a Gated-Delta-Net layer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/exec/exec.h"
#include "kernels/gdn/gated_delta_rule.h"

namespace pantheon::kernels {

/// Rows first_row … first_row + n_rows − 1 of a step continue the sequence whose states these are. n_rows
/// ≥ 1.
struct GdnHeadsRun {
    int first_row = 0;
    int n_rows = 0;
    float* conv_state = nullptr;  // see ConvRun; updated
    GdnState state;               // updated
};

struct GdnHeadsInputs {
    const float* u = nullptr;      // f32 [n_rows, conv_dim], the projected q heads, k heads and v heads
    const float* z = nullptr;      // f32 [n_rows, n_head_v, head_dim], the projected output gate
    const float* b = nullptr;      // f32 [n_rows, n_head_v], the projected write strength
    const float* alpha = nullptr;  // as b, of the decay
    const float* conv = nullptr;   // f32 [conv_dim, d_conv]
    const float* a = nullptr;      // f32 [n_head_v]; a and dt as in GdnGates
    const float* dt = nullptr;
    const float* norm = nullptr;  // f32 [head_dim]
    int n_head_k = 0;
    int n_head_v = 0;  // a multiple of n_head_k
    int head_dim = 0;
    int d_conv = 0;
    float eps = 0;  // of both norms

    int conv_dim() const { return (2 * n_head_k + n_head_v) * head_dim; }
};

/// Buffers for n_rows rows of the step that a backend may use in between; contents undefined.
struct GdnHeadsWork {
    float* qkv = nullptr;   // f32 [n_rows, conv_dim]
    float* beta = nullptr;  // f32 [n_rows, n_head_v]
    float* g = nullptr;     // f32 [n_rows, n_head_v]
};

/// CausalConv, L2Norm of each q and k head, GdnGates, GatedDeltaRule and GatedRmsNorm, one after the other.
/// y   f32 [n_rows, n_head_v, head_dim]; must not overlap the inputs
/// ref: those ops' ref. cpu: a thread carries a K head with its V heads through all of them, some tokens at a
/// time; the bits of those ops' cpu forms. Scratch: gdn_heads_scratch_bytes(in).
using GdnHeads = void(Exec& exec, const GdnHeadsRun* runs, int n_runs, const GdnHeadsInputs& in,
                      const GdnHeadsWork& work, float* y);
GdnHeads gdn_heads_ref, gdn_heads_cpu;

/// Per thread.
std::size_t gdn_heads_scratch_bytes(int n_head_k, int n_head_v, int head_dim);

}  // namespace pantheon::kernels

// Rotary position embedding: partial, NEOX pairing, with the interleaved multi-axis sections of this model
// family.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/exec/exec.h"

namespace pantheon::kernels {

struct RopeParams {
    int rope_dim = 0;               // rotated dimensions at the start of a head: even, ≤ head_dim
    double freq_base = 0;           // theta base
    double freq_scale = 1.0;        // positions are multiplied by it
    std::array<int, 4> sections{};  // pairs per axis: time, height, width, extra; the sum is > 0

    /// Whether pair i turns with the token's position. Pair i belongs to sector s = i mod Σ sections; sectors
    /// beyond the first three axes follow the fourth position stream, which is 0 for text: such a pair does
    /// not turn.
    bool pair_turns(int i) const {
        const int s = i % (sections[0] + sections[1] + sections[2] + sections[3]);
        return s < 3 * sections[static_cast<std::size_t>(s % 3)];
    }
};

/// For each token t and head, with i < rope_dim/2 and theta = pos[t] · freq_scale · freq_base^(−2i/rope_dim):
///   x'[i]              = x[i] cos theta − x[i + rope_dim/2] sin theta
///   x'[i + rope_dim/2] = x[i] sin theta + x[i + rope_dim/2] cos theta
/// Dimensions from rope_dim on, and pairs that do not turn, pass through.
/// x     f32 [n_tokens, n_heads, head_dim], in place    pos   [n_tokens], absolute positions
/// ref: angles and rotation in f64, rounded once. cpu: angles in f64, rotation in f32.
/// Scratch: rope_scratch_bytes(rope_dim).
using Rope = void(Exec& exec, const RopeParams& params, float* x, const std::int32_t* pos, int n_tokens,
                  int n_heads, int head_dim);
Rope rope_ref, rope_cpu;

/// Per thread: cosine and sine of each pair.
inline std::size_t rope_scratch_bytes(int rope_dim) {
    return static_cast<std::size_t>(rope_dim) * sizeof(double);
}

}  // namespace pantheon::kernels

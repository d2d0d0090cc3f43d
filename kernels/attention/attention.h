// Causal grouped-query attention over paged K and V.
#pragma once

#include <cstddef>

#include "kernels/attention/kv_view.h"
#include "kernels/exec/exec.h"

namespace pantheon::kernels {

/// For row j of a run, at position p = pos + j, and query head h, which reads KV head g = h / (n_head /
/// n_head_kv) (blocked: neighbouring query heads share a KV head):
///   s_r = (q · K_r) / sqrt(head_dim) for r = 0 … p;   y = Σ_r softmax(s)_r V_r
/// q, y   f32 [n_rows, n_head, head_dim]; must not overlap
/// runs   [n_runs]; K and V rows 0 … pos + n_rows − 1 of each are in its pages (append first)
/// ref: scores, softmax (maximum subtracted) and the sum over V in f64, rounded once.
/// cpu: f32, one page of kKvPageRows rows at a time, pages merged in order (online softmax): the grid is that
/// of absolute positions, so cuts into runs do not show. Scratch: attention_scratch_bytes(most rows of a
/// sequence, head_dim).
using Attention = void(Exec& exec, const AttentionRun* runs, int n_runs, const float* q, float* y,
                       int n_head);
Attention attention_ref, attention_cpu;

/// Per thread: the weights of all rows, the sum over V, and one row of the cache in f32.
inline std::size_t attention_scratch_bytes(std::int64_t n_kv_rows, int head_dim) {
    const std::size_t d = static_cast<std::size_t>(head_dim);
    return (static_cast<std::size_t>(n_kv_rows) + d) * sizeof(double) + d * sizeof(float);
}

}  // namespace pantheon::kernels

// Causal grouped-query attention over paged K and V.
#pragma once

#include <cstddef>

#include "kernels/attention/kv_view.h"
#include "kernels/exec/exec.h"

namespace pantheon::kernels {

/// For row j of a run, at position p = pos + j, and query head h, which reads KV head g = h / (n_head /
/// n_head_kv) (blocked: neighbouring query heads share a KV head):
///   s_r = (q · K_r) / sqrt(head_dim) for the rows r that p reads (KvView);   y = Σ_r softmax(s)_r V_r
/// q, y   f32 [n_rows, n_head, head_dim]; must not overlap
/// runs   [n_runs]; the rows up to pos + n_rows − 1 of each that its queries read are in its pages (append
/// first)
/// K and V count as what is kept of them, exactly (load_kv_row).
/// ref: scores, softmax (maximum subtracted) and the sum over V in f64, rounded once.
/// cpu: f32. Rows are taken in chunks of kAttentionChunkRows, those a page at a time with a running maximum;
/// chunks are merged in order. The grid is that of absolute positions and every query goes through it alone,
/// so cuts into runs do not show, nor does how many threads share a query's chunks.
/// Scratch: attention_scratch_bytes(most rows that a query reads, head_dim, n_head / n_head_kv).
using Attention = void(Exec& exec, const AttentionRun* runs, int n_runs, const float* q, float* y,
                       int n_head);
Attention attention_ref, attention_cpu;

constexpr int kAttentionChunkRows = 512;

/// Per thread, for both.
std::size_t attention_scratch_bytes(std::int64_t n_kv_rows, int head_dim, int group);

}  // namespace pantheon::kernels

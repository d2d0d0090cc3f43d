// One row of K or V in each format in which it may be kept.
#pragma once

#include <cstddef>

#include "kernels/attention/kv_view.h"

namespace pantheon::kernels {

/// f16: each value rounded half to even. In blocks of 32, of which q and, in f16, d are kept:
/// q8_0: d = max |x| / 127, q = x / d rounded half to even.
/// q4_0: q = x s / m rounded half to even and kept within −8 … 7, m the x with the largest magnitude, and
///       d = Σ x q / Σ q², the best one for these q; s is −8, or another of a few numbers near it when that
///       makes the squared error of the block less.
/// A block of zeros has d = 0, one with a value that is not finite d = NaN.
/// x   f32 [head_dim]    row   kv_row_bytes(type, head_dim) bytes, any alignment
void store_kv_row(KvRowType type, const float* x, int head_dim, std::byte* row);

/// What is kept, exactly: q · d needs no rounding in f32.
void load_kv_row(KvRowType type, const std::byte* row, int head_dim, float* x);

}  // namespace pantheon::kernels

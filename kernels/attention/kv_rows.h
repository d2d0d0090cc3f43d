// One row of K or V in each format in which it may be kept.
#pragma once

#include <cstddef>

#include "kernels/attention/kv_view.h"

namespace pantheon::kernels {

/// f16: each value rounded half to even. q8_0, q4_0, for each block of 32: d = max |x| / 127, or the x with
/// the largest |x| / −8, in f32; q = x / d rounded half to even (q4_0: at most 7); kept are q and d, the
/// latter in f16. A block of zeros has d = 0, one with a value that is not finite d = NaN.
/// x   f32 [head_dim]    row   kv_row_bytes(type, head_dim) bytes, any alignment
void store_kv_row(KvRowType type, const float* x, int head_dim, std::byte* row);

/// What is kept, exactly: q · d needs no rounding in f32.
void load_kv_row(KvRowType type, const std::byte* row, int head_dim, float* x);

}  // namespace pantheon::kernels

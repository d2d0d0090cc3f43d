// Token embedding: rows of a table, expanded on demand.
#pragma once

#include <cstdint>

#include "kernels/exec/exec.h"
#include "kernels/linear/weight_matrix.h"

namespace pantheon::kernels {

/// y[r] = row ids[r] of the table, exact; no scaling.
/// table   any supported type, n_out rows    ids   [n_rows], each in 0 … n_out − 1    y   f32 [n_rows, n_in]
/// Scratch: none.
using EmbedRows = void(Exec& exec, const WeightMatrix& table, const std::int32_t* ids, float* y, int n_rows);
EmbedRows embed_rows_ref;

}  // namespace pantheon::kernels

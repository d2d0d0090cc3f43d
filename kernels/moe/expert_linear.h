// Matrix times rows where each row has its own expert's matrix.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/exec/exec.h"
#include "kernels/linear/activation_rows.h"
#include "kernels/linear/weight_matrix.h"

namespace pantheon::kernels {

/// Which (token, rank) pairs each expert serves. Pair p = row · n_used + rank.
struct ExpertGroups {
    int n_active = 0;
    const std::int32_t* active = nullptr;  // [n_active] experts with at least one pair, ascending
    const std::int32_t* begin = nullptr;  // [n_active + 1]; pairs[begin[a]] … pairs[begin[a + 1] − 1] are a's
    const std::int32_t* pairs = nullptr;  // [n_pairs], ascending within an expert
};

/// Sorts pairs by expert. ids [n_pairs] as the router wrote them; active [n_expert], begin [n_expert + 1] and
/// pairs [n_pairs] are written and stay the caller's.
ExpertGroups group_by_expert(const std::int32_t* ids, int n_pairs, int n_expert, std::int32_t* active,
                             std::int32_t* begin, std::int32_t* pairs);

/// y[p][o] = Σ_i w[expert of p][o][i] · x[p / pairs_per_row][i] for every pair p
/// w   any supported type    x   n_pairs / pairs_per_row rows of n_in values
/// y   f32 [n_pairs, n_out]; must not overlap x
/// Precision, independence of rows and scratch as in Linear; a row of an expert is expanded or unpacked once
/// for several of its pairs.
using ExpertLinear = void(Exec& exec, const ExpertMatrices& w, const ExpertGroups& groups, ActivationRows& x,
                          int pairs_per_row, float* y);
ExpertLinear expert_linear_ref, expert_linear_cpu;

}  // namespace pantheon::kernels

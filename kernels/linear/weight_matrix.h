// A weight matrix as it lies in the file, rows of quantised blocks, and perhaps the same rows packed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/quant/weight_type.h"

namespace pantheon::kernels {

/// Maps n_in values to n_out values: n_out contiguous rows of n_in elements.
struct WeightMatrix {
    WeightType type = WeightType::f32;
    const std::byte* data = nullptr;  // no alignment to rely on
    std::int64_t n_in = 0;
    std::int64_t n_out = 0;
    std::int64_t row_bytes = 0;
    /// The rows once more, in consecutive panels of panel_rows each (weight_panels.h), on a cache line; or
    /// null.
    const std::byte* panels = nullptr;
    int panel_rows = 0;

    const std::byte* row(std::int64_t i) const { return data + i * row_bytes; }
};

/// One matrix per expert. The distance between experts follows from this tensor's own type and row count; a
/// view of half of a fused tensor keeps the distance of the whole.
struct ExpertMatrices {
    WeightMatrix first;
    std::int64_t n_expert = 0;
    std::int64_t expert_stride_bytes = 0;
    std::int64_t expert_panel_bytes = 0;  // from one expert's panels to the next one's

    const std::byte* row(std::int64_t expert, std::int64_t i) const {
        return first.row(i) + expert * expert_stride_bytes;
    }
    WeightMatrix at(std::int64_t expert) const {
        WeightMatrix matrix = first;
        matrix.data += expert * expert_stride_bytes;
        if (matrix.panels) matrix.panels += expert * expert_panel_bytes;
        return matrix;
    }
};

}  // namespace pantheon::kernels

// A row of raw logits as sampling reads it.
#pragma once

#include <span>

#include "kernels/sampling/tile_maxima.h"

namespace pantheon::model {

struct LogitRow {
    // Not explicit: a plain row is one whose maxima are not known.
    LogitRow(std::span<const float> raw, std::span<const float> maxima = {})
        : values(raw), tile_maxima(maxima) {}

    std::span<const float> values;       // f32 [n_vocab]
    std::span<const float> tile_maxima;  // see kernels::TileMaxima; empty: not known

    /// No value is infinite or NaN.
    bool is_finite() const;
};

}  // namespace pantheon::model

// What sampling wants to know of a row of logits before it reads them: where the great ones are.
#pragma once

#include <cstdint>

#include "kernels/exec/exec.h"

namespace pantheon::kernels {

constexpr int kLogitTile = 256;

constexpr std::int64_t n_logit_tiles(std::int64_t n) {
    return (n + kLogitTile - 1) / kLogitTile;
}

/// The greatest logit of each tile of kLogitTile; NaN where one of the tile is infinite or NaN.
/// logits   f32 [n_rows, n]
/// maxima   f32 [n_rows, n_logit_tiles(n)]
/// The same bits on every backend. Scratch: none.
using TileMaxima = void(Exec& exec, const float* logits, int n_rows, std::int64_t n, float* maxima);
TileMaxima tile_maxima_ref, tile_maxima_cpu;

}  // namespace pantheon::kernels

// How a product of weight rows and columns is cut into tiles of eight results, one lane each: eight rows of
// one column, or fewer rows of more columns. A weight block is unpacked once for all columns of its tile.
// Which lane a result gets does not change its bits.
#pragma once

#include "kernels/cpu/leaves.h"
#include "kernels/cpu/vec8.h"

namespace pantheon::kernels::PANTHEON_ISA {

/// Rows times Columns is 8; lane r · Columns + c. Rows and columns that are missing repeat the last one.
template <class Tile, int Rows, int Columns>
inline void dot_tiles(const std::byte* w, std::int64_t row_bytes, int n_rows, std::int64_t n_in,
                      const Column* columns, int n_columns, float* const* y) {
    static_assert(Rows * Columns == 8);
    Column padded[Columns];
    for (int c = 0; c < Columns; ++c) padded[c] = columns[c < n_columns ? c : n_columns - 1];
    for (int first = 0; first < n_rows; first += Rows) {
        const std::byte* rows[Rows];
        const int n = n_rows - first < Rows ? n_rows - first : Rows;
        for (int r = 0; r < Rows; ++r) rows[r] = w + (first + (r < n ? r : n - 1)) * row_bytes;
        float lanes[8];
        store(lanes, Tile::template dot<Rows, Columns>(rows, n_in, padded));
        for (int c = 0; c < n_columns; ++c)
            for (int r = 0; r < n; ++r) y[c][first + r] = lanes[r * Columns + c];
    }
}

/// The DotRows of a tile type.
template <class Tile>
inline void dot_rows_of(const std::byte* w, std::int64_t row_bytes, int n_rows, std::int64_t n_in,
                        const Column* columns, int n_columns, float* const* y) {
    if (n_columns == 1) return dot_tiles<Tile, 8, 1>(w, row_bytes, n_rows, n_in, columns, n_columns, y);
    if (n_columns == 2) return dot_tiles<Tile, 4, 2>(w, row_bytes, n_rows, n_in, columns, n_columns, y);
    if (n_columns <= 4) return dot_tiles<Tile, 2, 4>(w, row_bytes, n_rows, n_in, columns, n_columns, y);
    dot_tiles<Tile, 1, 8>(w, row_bytes, n_rows, n_in, columns, n_columns, y);
}

/// Quantised weights of this type; in an instruction set's own file.
DotRows* int_dot_rows(WeightType type);

}  // namespace pantheon::kernels::PANTHEON_ISA

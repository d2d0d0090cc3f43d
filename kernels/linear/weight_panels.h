// Weight rows regrouped for the inner loops: a panel holds as many rows as a register has 32-bit lanes, and
// each lane meets four consecutive weights of its own row. The bits of every weight are kept; only their
// places change.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/isa.h"
#include "kernels/quant/weight_type.h"

namespace pantheon::kernels {

/// Rows of a panel for this instruction set; 0: it works on rows as the file has them.
int panel_rows(CpuIsa isa);

/// Whether rows of this type and length can be packed.
bool has_panels(WeightType type, std::int64_t n_in);

/// Where things lie in a panel: for each block its scales and then its quants (Q8_0: for each two blocks), so
/// that a panel is read from end to end. Anything else costs half of the bandwidth: hardware prefetchers lose
/// a stream that jumps. With R rows the head of a block of each type is (u8 unless said; [i][r] is i · R +
/// r):
///   Q4_K, Q5_K   f16 d[R], f16 dmin[R], low[4][R][2], high[2][R][2]   low[p][r][i] = scale | min « 4 of
///   32-group
///                2 p + i; high: their upper bits, groups 0 … 3 in the low nibble, 4 … 7 in the high one
///   Q6_K         f16 d[R], i8 scale[8][R][2]                          of 16-group 2 p + i
///   Q3_K         f16 d[R], low[4][R][2], high[2][R][2]                scale + 32, as nibbles and bit pairs
///   IQ4_XS       f16 d[R], low[2][R][2], high[R][2]                   likewise, per 32-group
///   Q8_0         f16 d[R]
/// padded to whole vectors of 4 R bytes. Quants of each group of 32 are such vectors, bytes 4 r … 4 r + 3 for
/// row r. Vector g of the unpacked group has elements 4 g … 4 g + 3. Low and high nibbles of a stored vector
/// are g = 2 i and 2 i + 1.
///   Q4_K, IQ4_XS   4 nibble vectors          Q5_K   fifth bits (bit g), 4 nibble vectors
///   Q6_K           upper bits (2 g) of g = 0 … 3, of 4 … 7, 4 nibble vectors
///   Q3_K           upper bits (bit g), lower bits (2 g) of g = 0 … 3, of 4 … 7      Q8_0   8 vectors
struct PanelLayout {
    int n_rows = 0;
    int blocks_per_unit = 1;
    std::int64_t n_blocks = 0;                    // of the weight type
    std::int64_t head_bytes = 0, body_bytes = 0;  // of a unit; of a block
    std::int64_t unit_bytes = 0;
    std::int64_t bytes = 0;  // of a panel

    std::int64_t n_panels(std::int64_t n_out) const { return (n_out + n_rows - 1) / n_rows; }
};
PanelLayout panel_layout(WeightType type, int n_rows, std::int64_t n_in);

/// Packs up to layout.n_rows rows; the places of missing rows are filled with zeros, which multiply to 0.
/// rows   n rows of the type, row_bytes apart, any alignment    panel   layout.bytes bytes
void pack_panel(WeightType type, const PanelLayout& layout, const std::byte* rows, std::int64_t row_bytes,
                int n, std::byte* panel);

}  // namespace pantheon::kernels

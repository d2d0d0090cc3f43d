// The codebooks of the IQ1, IQ2 and IQ3 types. A grid is the sorted list of the level vectors that a type may
// use: it follows no formula, but which vectors are in it is one bit each. The bitmaps are in
// iq_grid_bitmaps.cpp and are expanded once, on first use.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace pantheon::kernels {

template <class T, std::size_t Dims, std::size_t Entries>
using IqGrid = std::array<std::array<T, Dims>, Entries>;

struct IqGrids {
    IqGrid<std::uint8_t, 8, 256> iq2_xxs;
    IqGrid<std::uint8_t, 8, 512> iq2_xs;
    IqGrid<std::uint8_t, 8, 1024> iq2_s;
    IqGrid<std::int8_t, 8, 2048> iq1;
    IqGrid<std::uint8_t, 4, 256> iq3_xxs;
    IqGrid<std::uint8_t, 4, 512> iq3_s;
};

/// Expanded on the first call, which may come from any thread.
const IqGrids& iq_grids();

/// Presence bitmaps as hex digits, byte 0 first. Bit N % 8 of byte N / 8 says whether the vector (v_0, v_1,
/// ...) of level numbers with N = sum of v_i * base^i is in the grid; base 3 for eight dimensions, 8 for
/// four.
struct IqGridBitmaps {
    std::string_view iq2_xxs, iq2_xs, iq2_s, iq1, iq3_xxs, iq3_s;
};
extern const IqGridBitmaps kIqGridBitmaps;

}  // namespace pantheon::kernels

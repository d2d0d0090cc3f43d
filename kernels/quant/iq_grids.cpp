#include "kernels/quant/iq_grids.h"

#include <cassert>

namespace pantheon::kernels {
namespace {

unsigned hex_digit(char c) {
    return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
}

bool has_vector(std::string_view bitmap, unsigned number) {
    const std::size_t byte = number / 8;
    const unsigned value = hex_digit(bitmap[2 * byte]) << 4 | hex_digit(bitmap[2 * byte + 1]);
    return value >> (number % 8) & 1;
}

template <class T, std::size_t Dims, std::size_t Entries, std::size_t Base>
void expand(std::string_view bitmap, const std::array<T, Base>& levels, IqGrid<T, Dims, Entries>& grid) {
    unsigned n_vectors = 1;
    for (std::size_t i = 0; i < Dims; ++i) n_vectors *= Base;
    assert(bitmap.size() == 2 * ((n_vectors + 7) / 8));
    std::size_t entry = 0;
    for (unsigned number = 0; number < n_vectors; ++number) {
        if (!has_vector(bitmap, number)) continue;
        assert(entry < Entries);
        unsigned rest = number;
        for (T& value : grid[entry]) {
            value = levels[rest % Base];
            rest /= Base;
        }
        ++entry;
    }
    assert(entry == Entries);
}

IqGrids expand_all() {
    constexpr std::array<std::uint8_t, 3> kIq2Levels = {8, 25, 43};
    constexpr std::array<std::int8_t, 3> kIq1Levels = {-1, 0, 1};
    constexpr std::array<std::uint8_t, 8> kIq3XxsLevels = {4, 12, 20, 28, 36, 44, 52, 62};
    constexpr std::array<std::uint8_t, 8> kIq3SLevels = {1, 3, 5, 7, 9, 11, 13, 15};
    IqGrids grids;
    expand(kIqGridBitmaps.iq2_xxs, kIq2Levels, grids.iq2_xxs);
    expand(kIqGridBitmaps.iq2_xs, kIq2Levels, grids.iq2_xs);
    expand(kIqGridBitmaps.iq2_s, kIq2Levels, grids.iq2_s);
    expand(kIqGridBitmaps.iq1, kIq1Levels, grids.iq1);
    expand(kIqGridBitmaps.iq3_xxs, kIq3XxsLevels, grids.iq3_xxs);
    expand(kIqGridBitmaps.iq3_s, kIq3SLevels, grids.iq3_s);
    return grids;
}

}  // namespace

const IqGrids& iq_grids() {
    static const IqGrids grids = expand_all();
    return grids;
}

}  // namespace pantheon::kernels

#include "kernels/quant/iq_grids.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace pantheon::kernels {
namespace {

std::uint32_t crc32(const void* data, std::size_t n) {
    const auto* p = static_cast<const unsigned char*>(data);
    std::uint32_t crc = 0xFFFFFFFF;
    for (std::size_t i = 0; i < n; ++i) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320 : 0);
    }
    return ~crc;
}

template <class Grid>
std::uint32_t crc32_of(const Grid& grid) {
    return crc32(&grid, sizeof grid);
}

TEST(IqGridsTest, ExpandToTheTablesOfTheFormat) {
    const IqGrids& grids = iq_grids();
    EXPECT_EQ(crc32_of(grids.iq2_xxs), 0x9924ff02);
    EXPECT_EQ(crc32_of(grids.iq2_xs), 0xfa1e1bfd);
    EXPECT_EQ(crc32_of(grids.iq2_s), 0x25ae5bf1);
    EXPECT_EQ(crc32_of(grids.iq1), 0xb85e6ccf);
    EXPECT_EQ(crc32_of(grids.iq3_xxs), 0x07ba9ed0);
    EXPECT_EQ(crc32_of(grids.iq3_s), 0xf576e4f3);
}

}  // namespace
}  // namespace pantheon::kernels

#include "kernels/sampling/tile_maxima.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/kernels/kernel_test.h"

namespace pantheon::kernels::test {
namespace {

const auto kTileMaxima = host_impls(tile_maxima_ref, tile_maxima_cpu);

TEST(TileMaximaTest, AreTheGreatestOfEachTileAndNoMore) {
    constexpr std::int64_t kN = 3 * kLogitTile + 13;
    for (const auto& impl : kTileMaxima)
        with_teams(impl, [&](Exec& exec) {
            std::vector<float> logits = random_values(2 * kN, 7);
            logits[kN - 1] = 90;           // the last of the short tile
            logits[kN + kLogitTile] = 80;  // the first of a tile
            for (std::int64_t i = 0; i < kLogitTile; ++i) logits[kN + i] = -5.0f - static_cast<float>(i);
            Guarded maxima(8);
            impl.op(exec, logits.data(), 2, kN, maxima.data());
            EXPECT_EQ(maxima.data()[3], 90);
            EXPECT_EQ(maxima.data()[4], -5);
            EXPECT_EQ(maxima.data()[5], 80);
            for (int t = 0; t < 3; ++t)
                EXPECT_EQ(maxima.data()[t], *std::max_element(logits.begin() + t * kLogitTile,
                                                              logits.begin() + (t + 1) * kLogitTile));
        });
}

TEST(TileMaximaTest, AValueThatIsNotFiniteMarksItsTileOnly) {
    constexpr std::int64_t kN = 2 * kLogitTile + 5;
    for (const auto& impl : kTileMaxima)
        with_teams(impl, [&](Exec& exec) {
            for (const float bad :
                 {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                  -std::numeric_limits<float>::infinity()})
                for (const std::int64_t at : {std::int64_t{0}, std::int64_t{kLogitTile + 9}, kN - 1}) {
                    std::vector<float> logits(kN, 1.0f);
                    logits[at] = bad;
                    Guarded maxima(3);
                    impl.op(exec, logits.data(), 1, kN, maxima.data());
                    for (int t = 0; t < 3; ++t)
                        EXPECT_EQ(std::isnan(maxima.data()[t]), t == at / kLogitTile) << bad << " at " << at;
                }
        });
}

}  // namespace
}  // namespace pantheon::kernels::test

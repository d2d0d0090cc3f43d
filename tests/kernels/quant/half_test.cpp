#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "kernels/quant/dequantize.h"

namespace pantheon::kernels {
namespace {

double value_of(std::uint16_t h) {
    const int exponent = h >> 10 & 31, mantissa = h & 1023;
    const double magnitude =
        exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
    return h & 0x8000 ? -magnitude : magnitude;
}

/// The definition of rounding to nearest, ties to even, by search over all finite halves of one sign.
std::uint16_t nearest_half(double x) {
    const std::uint16_t sign = std::signbit(x) ? 0x8000 : 0;
    x = std::fabs(x);
    if (x >= 65520.0) return sign | 0x7C00;
    int low = 0, high = 0x7BFF;
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (value_of(static_cast<std::uint16_t>(middle)) <= x)
            low = middle;
        else
            high = middle - 1;
    }
    if (low == 0x7BFF) return static_cast<std::uint16_t>(sign | low);
    const double below = x - value_of(static_cast<std::uint16_t>(low));
    const double above = value_of(static_cast<std::uint16_t>(low + 1)) - x;
    const bool goes_up = above < below || (above == below && (low & 1));
    return static_cast<std::uint16_t>(sign | (low + (goes_up ? 1 : 0)));
}

TEST(HalfTest, ExpandsEveryFiniteHalfExactly) {
    for (std::uint32_t h = 0; h < 0x10000; ++h) {
        if ((h & 0x7C00) == 0x7C00) continue;
        const float f = half_to_float(static_cast<std::uint16_t>(h));
        ASSERT_EQ(static_cast<double>(f), value_of(static_cast<std::uint16_t>(h))) << h;
        ASSERT_EQ(std::signbit(f), (h & 0x8000) != 0) << h;
    }
}

TEST(HalfTest, KeepsInfinityAndNan) {
    EXPECT_EQ(half_to_float(0x7C00), std::numeric_limits<float>::infinity());
    EXPECT_EQ(half_to_float(0xFC00), -std::numeric_limits<float>::infinity());
    EXPECT_TRUE(std::isnan(half_to_float(0x7C01)));
    EXPECT_EQ(float_to_half(std::numeric_limits<float>::infinity()), 0x7C00);
    EXPECT_EQ(float_to_half(-std::numeric_limits<float>::infinity()), 0xFC00);
    const std::uint16_t nan = float_to_half(std::numeric_limits<float>::quiet_NaN());
    EXPECT_EQ(nan & 0x7C00, 0x7C00);
    EXPECT_NE(nan & 0x03FF, 0);
}

TEST(HalfTest, RoundTripsEveryHalf) {
    for (std::uint32_t h = 0; h < 0x10000; ++h) {
        if ((h & 0x7C00) == 0x7C00 && (h & 0x3FF)) continue;
        ASSERT_EQ(float_to_half(half_to_float(static_cast<std::uint16_t>(h))), h);
    }
}

TEST(HalfTest, RoundsHalfToEven) {
    // Around every half: the middle to the next one, and one float step to either side of the middle.
    for (std::uint32_t h = 0; h < 0x7C00; ++h) {
        const double next = h == 0x7BFF ? 65536.0 : value_of(static_cast<std::uint16_t>(h + 1));
        const auto middle = static_cast<float>((value_of(static_cast<std::uint16_t>(h)) + next) / 2);
        for (const float f : {std::nextafter(middle, 0.0f), middle, std::nextafter(middle, 1e30f)}) {
            ASSERT_EQ(float_to_half(f), nearest_half(f)) << h << " " << f;
            ASSERT_EQ(float_to_half(-f), nearest_half(-f)) << h << " " << f;
        }
    }
}

TEST(HalfTest, RoundsRandomFloatsToTheNearest) {
    std::mt19937 random(1);
    for (int i = 0; i < 200'000; ++i) {
        const auto f = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
        if (!std::isfinite(f)) continue;
        ASSERT_EQ(float_to_half(f), nearest_half(f)) << f;
    }
}

}  // namespace
}  // namespace pantheon::kernels

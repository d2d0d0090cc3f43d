#include "kernels/quant/dequantize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace pantheon::kernels {
namespace {

constexpr int kNone = -1;

/// One block made of the byte pattern ((7 i^2 + 37 i + 11) / 2) mod 256 with the half at d_offset set to
/// 0.0625 and the one at m_offset to 0.03125, and what an independent decoder makes of it.
struct Golden {
    const char* type;
    int d_offset, m_offset;
    double sum;           // of y[e]
    double weighted_sum;  // of (e + 1) y[e]
    std::vector<double> samples;
};

const std::vector<int> kSamples32 = {0, 1, 9, 16, 17, 31};
const std::vector<int> kSamples256 = {0, 1, 9, 17, 33, 100, 255};

const Golden kGolden[] = {
    {"Q4_0", 0, kNone, -0.8125, -19.375, {0, 0.25, 0, -0.3125, -0.1875, -0.3125}},
    {"Q4_1", 0, 2, 15.75, 260.6875, {0.46875, 0.59375, 0.34375, 0.53125, 0.71875, 0.34375}},
    {"Q5_0", 0, kNone, -1, 16.8125, {-0.875, -0.875, -0.125, 0.9375, 0.1875, 0.5625}},
    {"Q5_1", 0, 2, 33.9375, 550.5625, {1.59375, 1.46875, 0.21875, 0.46875, 1.78125, 0.90625}},
    {"Q8_0", 0, kNone, 22, 491.5, {3.5, 5.75, 7.5, -4, 5.25, 4.6875}},
    {"IQ4_NL", 0, kNone, -7.9375, -210.375, {0.0625, 3.3125, 0.0625, -4.0625, -2.1875, -4.0625}},
    {"MXFP4", kNone, kNone, 3.25, 46.625, {-0.375, 0, -0.5, 0.125, 0.375, -0.25}},
    {"Q2_K", 80, 82, 128.625, 15404.75, {0.3125, 0.9375, 0.9375, 2.03125, -0.09375, -0.09375, -0.0625}},
    {"Q3_K", 108, kNone, 42, 6435.125, {-0.6875, -2.0625, -2.0625, 5.0625, -3, -3.375, 1.5}},
    {"Q4_K", 0, 2, 4420.125, 568336, {3.90625, -0.46875, 4.78125, 3.03125, 10.4688, 32.625, 11.6875}},
    {"Q5_K", 0, 2, 9473.125, 1239420, {10.9062, 6.53125, 11.7812, 10.0312, 78.1562, 73.25, 17.8125}},
    {"Q6_K", 208, kNone, 681.375, 182739.5, {18.5625, -45.5625, -38.8125, 70.0625, -71.5, 107.625, -34.375}},
    {"IQ4_XS", 0, kNone, 1886.25, 280098, {-20.3125, 15.625, 101.562, -82.8125, 56.5, 85.3125, -91.8125}},
    {"IQ2_XXS",
     0,
     kNone,
     -136.59375,
     -20291.34375,
     {1.5625, -4.88281, 4.88281, 8.39844, -0.4375, -0.5625, -0.9375}},
    {"IQ2_XS",
     0,
     kNone,
     21.351562,
     552.640625,
     {1.0625, -5.71094, 1.0625, 3.69531, 4.88281, -3.71094, -1.67969}},
    {"IQ2_S",
     0,
     kNone,
     -24.226562,
     -9247.484375,
     {1.5625, 4.88281, 4.88281, -1.36719, -1.0625, 2.14844, 1.1875}},
    {"IQ3_XXS", 0, kNone, 216.375, 30232, {1.3125, 1.6875, 2.90625, 1.6875, -1.5625, -5.9375, 6.5625}},
    {"IQ3_S", 0, kNone, -55.375, -8434.375, {10.9375, 17.1875, 10.9375, -1.5625, -0.5625, -1.6875, 2.0625}},
    {"IQ1_S",
     0,
     kNone,
     20.6875,
     2001.8125,
     {0.632812, 0.632812, 0.632812, 0.0703125, 0.914062, 0.820312, -0.710938}},
    {"IQ1_M",
     kNone,
     kNone,
     -7.9375,
     -838.25,
     {0.773438, 0.773438, 0.0859375, 0.820312, -1.05469, 0.0546875, -0.773438}},
};

void put_half(std::vector<std::byte>& block, int offset, std::uint16_t bits) {
    if (offset != kNone) std::memcpy(block.data() + offset, &bits, sizeof bits);
}

std::vector<std::byte> golden_block(const Golden& g) {
    const int n_bytes = weight_type_by_name(g.type)->block_bytes;
    std::vector<std::byte> block;
    for (int i = 0; i < n_bytes; ++i)
        block.push_back(static_cast<std::byte>((7 * i * i + 37 * i + 11) >> 1 & 255));
    put_half(block, g.d_offset, 0x2C00);
    put_half(block, g.m_offset, 0x2800);
    const std::string_view type = g.type;
    if (type == "MXFP4") block[0] = std::byte{125};
    if (type == "IQ1_M") {  // the top nibbles of four words are the block scale, low nibble first
        constexpr unsigned kNibbles[] = {0x0, 0x0, 0xC, 0x2};
        for (int i = 0; i < 4; ++i) {
            std::byte& high = block[static_cast<std::size_t>(48 + 2 * i + 1)];
            high = (high & std::byte{0x0F}) | static_cast<std::byte>(kNibbles[i] << 4);
        }
    }
    return block;
}

void expect_close(double actual, double want) {
    EXPECT_NEAR(actual, want, 1e-5 * std::max(1.0, std::fabs(want)));
}

TEST(DequantizeTest, DecodesTheGoldenBlockOfEveryQuantisedType) {
    for (const Golden& g : kGolden) {
        SCOPED_TRACE(g.type);
        const WeightTypeInfo* info = weight_type_by_name(g.type);
        const std::vector<std::byte> block = golden_block(g);
        std::vector<float> y(static_cast<std::size_t>(info->block_elems));
        dequantize_row(static_cast<WeightType>(info->id), block.data(), y.data(), info->block_elems);
        double sum = 0, weighted_sum = 0;
        for (std::size_t e = 0; e < y.size(); ++e) {
            sum += y[e];
            weighted_sum += static_cast<double>(e + 1) * y[e];
        }
        expect_close(sum, g.sum);
        expect_close(weighted_sum, g.weighted_sum);
        const std::vector<int>& at = info->block_elems == 32 ? kSamples32 : kSamples256;
        ASSERT_EQ(at.size(), g.samples.size());
        for (std::size_t i = 0; i < at.size(); ++i)
            expect_close(y[static_cast<std::size_t>(at[i])], g.samples[i]);
    }
}

TEST(DequantizeTest, GoldenBlocksCoverEverySupportedQuantisedType) {
    for (int id = 0; id < 64; ++id) {
        const WeightTypeInfo* info = weight_type_info(id);
        if (!info || !info->is_supported || info->block_elems == 1) continue;
        const bool is_covered = std::any_of(std::begin(kGolden), std::end(kGolden),
                                            [&](const Golden& g) { return info->name == g.type; });
        EXPECT_TRUE(is_covered) << info->name;
    }
}

TEST(DequantizeTest, ReadsRowsOfBlocksAtAnyAddressAndWritesNothingElse) {
    for (const Golden& g : kGolden) {
        SCOPED_TRACE(g.type);
        const WeightTypeInfo* info = weight_type_by_name(g.type);
        const auto type = static_cast<WeightType>(info->id);
        const auto n = static_cast<std::size_t>(info->block_elems);
        const std::vector<std::byte> block = golden_block(g);
        std::vector<float> one(n);
        dequantize_row(type, block.data(), one.data(), info->block_elems);

        std::vector<std::byte> row(1);  // one byte off any alignment
        for (int copy = 0; copy < 3; ++copy) row.insert(row.end(), block.begin(), block.end());
        constexpr float kGuard = 12345.0f;
        std::vector<float> y(3 * n + 2, kGuard);
        dequantize_row(type, row.data() + 1, y.data() + 1, 3 * info->block_elems);
        EXPECT_EQ(y.front(), kGuard);
        EXPECT_EQ(y.back(), kGuard);
        for (std::size_t e = 0; e < 3 * n; ++e) ASSERT_EQ(y[1 + e], one[e % n]) << e;
    }
}

TEST(DequantizeTest, CopiesFloatTypesExactly) {
    const float f32[] = {0.0f, -1.5f, 3.0e-39f, 1.0e30f};
    const std::uint16_t f16[] = {0x0000, 0xBE00, 0x0001, 0x7BFF};
    const std::uint16_t bf16[] = {0x0000, 0xBFC0, 0x0001, 0x7F7F};
    const double want16[] = {0.0, -1.5, std::ldexp(1.0, -24), 65504.0};
    const double want_bf16[] = {0.0, -1.5, std::ldexp(1.0, -133), std::ldexp(255.0, 120)};
    float y[4];
    dequantize_row(WeightType::f32, reinterpret_cast<const std::byte*>(f32), y, 4);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(y[i], f32[i]);
    dequantize_row(WeightType::f16, reinterpret_cast<const std::byte*>(f16), y, 4);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(y[i], want16[i]);
    dequantize_row(WeightType::bf16, reinterpret_cast<const std::byte*>(bf16), y, 4);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(y[i], want_bf16[i]);
}

TEST(DequantizeTest, Mxfp4ScalesCoverTheWholeExponentRange) {
    struct Case {
        int exponent;
        double want;  // of the element with value 1 before scaling, which is stored doubled
    };
    constexpr Case kCases[] = {{0, -128}, {1, -127}, {2, -126}, {127, -1}, {128, 0}, {255, 127}};
    for (const Case& c : kCases) {
        std::byte block[17] = {static_cast<std::byte>(c.exponent), std::byte{0x01}};
        float y[32];
        dequantize_row(WeightType::mxfp4, block, y, 32);
        EXPECT_EQ(y[0], std::ldexp(1.0, static_cast<int>(c.want))) << c.exponent;
        EXPECT_EQ(y[1], 0.0f);
    }
}

}  // namespace
}  // namespace pantheon::kernels

#include "kernels/quant/weight_type.h"

#include <gtest/gtest.h>

#include <string>

namespace pantheon::kernels {
namespace {

TEST(WeightTypeTest, KnowsNameAndBlockOfEveryId) {
    struct Case {
        int id;
        const char* name;
        int block_elems, block_bytes;
        bool is_supported;
    };
    constexpr Case kCases[] = {
        {0, "F32", 1, 4, true},         {1, "F16", 1, 2, true},         {2, "Q4_0", 32, 18, true},
        {3, "Q4_1", 32, 20, true},      {6, "Q5_0", 32, 22, true},      {7, "Q5_1", 32, 24, true},
        {8, "Q8_0", 32, 34, true},      {9, "Q8_1", 32, 36, false},     {10, "Q2_K", 256, 84, true},
        {11, "Q3_K", 256, 110, true},   {12, "Q4_K", 256, 144, true},   {13, "Q5_K", 256, 176, true},
        {14, "Q6_K", 256, 210, true},   {15, "Q8_K", 256, 292, false},  {16, "IQ2_XXS", 256, 66, true},
        {17, "IQ2_XS", 256, 74, true},  {18, "IQ3_XXS", 256, 98, true}, {19, "IQ1_S", 256, 50, true},
        {20, "IQ4_NL", 32, 18, true},   {21, "IQ3_S", 256, 110, true},  {22, "IQ2_S", 256, 82, true},
        {23, "IQ4_XS", 256, 136, true}, {24, "I8", 1, 1, false},        {25, "I16", 1, 2, false},
        {26, "I32", 1, 4, false},       {27, "I64", 1, 8, false},       {28, "F64", 1, 8, false},
        {29, "IQ1_M", 256, 56, true},   {30, "BF16", 1, 2, true},       {34, "TQ1_0", 256, 54, false},
        {35, "TQ2_0", 256, 66, false},  {39, "MXFP4", 32, 17, true},    {40, "NVFP4", 64, 36, false},
        {41, "Q1_0", 128, 18, false},   {42, "Q2_0", 64, 18, false},
    };
    for (const Case& c : kCases) {
        SCOPED_TRACE(c.name);
        const WeightTypeInfo* info = weight_type_info(c.id);
        ASSERT_NE(info, nullptr);
        EXPECT_EQ(info->id, c.id);
        EXPECT_EQ(info->name, c.name);
        EXPECT_EQ(info->block_elems, c.block_elems);
        EXPECT_EQ(info->block_bytes, c.block_bytes);
        EXPECT_EQ(info->is_supported, c.is_supported);
        EXPECT_EQ(row_bytes(*info, 3 * c.block_elems), 3 * c.block_bytes);
    }
}

TEST(WeightTypeTest, RefusesRetiredAndUnknownIds) {
    for (const int id : {-1, 4, 5, 31, 32, 33, 36, 37, 38, 43, 97, 137, 399, 1 << 30})
        EXPECT_EQ(weight_type_info(id), nullptr) << id;
}

TEST(WeightTypeTest, FindsNamesInAnyCase) {
    EXPECT_EQ(weight_type_by_name("q4_k")->id, 12);
    EXPECT_EQ(weight_type_by_name("Q4_K")->id, 12);
    EXPECT_EQ(weight_type_by_name("iQ2_xxS")->id, 16);
    EXPECT_EQ(weight_type_by_name("nvfp4")->id, 40);
    for (const char* name : {"", "Q4", "Q4_K_M", "q4-k"})
        EXPECT_EQ(weight_type_by_name(name), nullptr) << name;
}

}  // namespace
}  // namespace pantheon::kernels

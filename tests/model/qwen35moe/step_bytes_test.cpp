#include "model/step_bytes.h"

#include <gtest/gtest.h>

#include "model/qwen35moe/weights.h"
#include "tests/model/qwen35moe/tiny_model.h"

namespace pantheon::model {
namespace {

TEST(StepBytesTest, ExpertsHitByChance) {
    // The table of B and E(B) for 8 of 256 experts.
    EXPECT_NEAR(expected_experts(256, 8, 1), 8.0, 1e-9);
    EXPECT_NEAR(expected_experts(256, 8, 2), 15.75, 1e-9);
    EXPECT_NEAR(expected_experts(256, 8, 8), 57.4, 0.05);
    EXPECT_NEAR(expected_experts(256, 8, 16), 102.0, 0.05);
    EXPECT_NEAR(expected_experts(256, 8, 100'000), 256.0, 1e-6);
    EXPECT_EQ(expected_experts(4, 4, 1), 4.0);
}

TEST(StepBytesTest, ADeepContextAndMoreSequencesCostTheirOwnBytesOnly) {
    const auto weights = *test::tiny_model().load();
    const StepBytes bytes(*weights, KvSettings{});
    const CheckpointSizes sizes = checkpoint_sizes(*weights, KvSettings{});
    const auto row = static_cast<double>(sizes.block_bytes) / sizes.block_rows;
    EXPECT_NEAR(bytes.of(1, 1, 100) - bytes.of(1, 1, 0), 100 * row, 1e-3);
    EXPECT_NEAR(bytes.of(3, 3, 0) - bytes.of(3, 2, 0), 2.0 * static_cast<double>(sizes.image_bytes), 1e-3);
    // All experts at most: no step reads more weights than the file has.
    EXPECT_LE(bytes.of(1'000'000, 0, 0), static_cast<double>(weights->weight_bytes()) + 1);
    EXPECT_GT(bytes.of(1'000'000, 0, 0), 0.5 * static_cast<double>(weights->weight_bytes()));
}

}  // namespace
}  // namespace pantheon::model

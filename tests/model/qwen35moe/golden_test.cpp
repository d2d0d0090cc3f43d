// The published numbers of the tiny fixture, at the precision at which they are printed.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/model/qwen35moe/stepper.h"

namespace pantheon::test {
namespace {

// The numbers have five decimals; f32 arithmetic adds its share, which grows with the size of the values.
constexpr double kPrinted = 2e-5;
constexpr SlotId kSlot{0};

void expect_starts_with(const std::vector<float>& have, const std::vector<double>& want,
                        double tolerance = kPrinted) {
    ASSERT_GE(have.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(have[i], want[i], tolerance) << "element " << i;
}

class GoldenFixture : public testing::Test {
  protected:
    Stepper stepper_{tiny_model()};
    Rows logits_ = stepper_.sequence(kSlot, golden_tokens(), 16);
};

TEST(FixtureValues, MatchTheirCheckValues) {
    EXPECT_NEAR(fixture_value("token_embd.weight", 0), 0.19982541, 1e-8);
    EXPECT_NEAR(fixture_value("token_embd.weight", 1), 0.02065480, 1e-8);
    EXPECT_NEAR(fixture_value("blk.0.ssm_a", 2), -0.54892731, 1e-7);
    EXPECT_NEAR(fixture_value("blk.1.ffn_gate_exps.weight", 1), 0.17241800, 1e-7);
}

TEST_F(GoldenFixture, ResidualStreamAfterEachBlock) {
    const struct {
        int layer;
        std::vector<double> at_0, at_15;
    } kBlocks[] = {
        {0,
         {-0.69118, 3.08605, 2.01041, 0.05732, -1.03615, -0.12268},
         {-1.54539, -2.58837, -1.91960, -0.28008, 0.53868, -0.38451}},
        {1,
         {-1.04123, 3.63916, 3.02194, -0.87806, -1.17419, 0.33592},
         {-0.01864, -4.11597, -2.43193, -0.06960, -1.52433, -1.92170}},
        {2,
         {-1.37869, 3.78771, 3.18379, -0.80235, -0.80581, -1.39397},
         {0.92595, -5.03944, -1.19557, 0.12622, -2.32494, -1.65592}},
        {3,
         {0.47394, 5.97112, 4.33083, 0.00458, -1.04819, 0.52373},
         {0.18309, -3.87001, -2.43078, 0.46255, -1.39021, -0.49183}},
    };
    for (const auto& block : kBlocks) {
        SCOPED_TRACE(block.layer);
        expect_starts_with(stepper_.recorder.blocks[block.layer][0], block.at_0);
        expect_starts_with(stepper_.recorder.blocks[block.layer][15], block.at_15);
    }
}

TEST_F(GoldenFixture, ExpertsAndTheirWeights) {
    const struct {
        int layer;
        std::size_t pos;
        std::vector<std::int32_t> experts;
        double first_weight;
    } kChoices[] = {{0, 0, {6, 1}, 0.993052},
                    {0, 15, {5, 7}, 0.845857},
                    {3, 0, {4, 3}, 0.864641},
                    {3, 15, {6, 4}, 0.847047}};
    for (const auto& choice : kChoices) {
        EXPECT_EQ(stepper_.recorder.experts[choice.layer][choice.pos], choice.experts);
        const auto& weights = stepper_.recorder.weights[choice.layer][choice.pos];
        EXPECT_NEAR(weights[0], choice.first_weight, 1e-6);
        EXPECT_NEAR(weights[0] + weights[1], 1.0, 1e-6);
    }
}

TEST_F(GoldenFixture, HiddenVectorAndLogits) {
    expect_starts_with(stepper_.recorder.hidden[0], {0.21216, 3.04846, 1.26568, 0.00125});
    expect_starts_with(stepper_.recorder.hidden[15], {0.08704, -2.09814, -0.75439, 0.13360});
    expect_starts_with(logits_[0],
                       {-0.25394, 1.09066, 0.01962, -0.16710, 1.12696, 0.71384, 0.89965, -2.28662});
    expect_starts_with(logits_[15],
                       {0.79999, 0.32713, 0.45118, 0.73660, 2.26457, -0.07928, -0.01013, 0.92781});
    const struct {
        std::size_t pos;
        std::ptrdiff_t argmax;
        double max, sum;
    } kRows[] = {{0, 86, 3.71861, -27.7916}, {15, 106, 2.38705, -14.4899}};
    for (const auto& row : kRows) {
        const auto& logits = logits_[row.pos];
        ASSERT_EQ(logits.size(), 300u);
        const auto top = std::max_element(logits.begin(), logits.end());
        EXPECT_EQ(top - logits.begin(), row.argmax);
        EXPECT_NEAR(*top, row.max, kPrinted);
        EXPECT_NEAR(std::accumulate(logits.begin(), logits.end(), 0.0), row.sum, 3e-4);
    }
}

TEST_F(GoldenFixture, FinalStatesOfTheFirstLayer) {
    const float* conv = stepper_.slots.conv_state(kSlot, 0);
    expect_starts_with({conv, conv + 3}, {-0.92993, -0.10967, 0.17497});
    expect_starts_with({conv + 127 * 3, conv + 128 * 3}, {0.25903, -1.03091, -1.38116});

    const kernels::GdnState state = stepper_.slots.gdn_state(kSlot, 0);
    const double kRow[] = {-0.045512, 0.104770, -0.065264, 0.013593};
    for (int k = 0; k < 4; ++k) EXPECT_NEAR(state.at(0, 0, k), kRow[k], 2e-6);
    const double kSquares[] = {4.214353, 4.218004, 2.384904, 0.653086};
    for (int head = 0; head < 4; ++head) {
        double sum = 0;
        for (int v = 0; v < 16; ++v)
            for (int k = 0; k < 16; ++k)
                sum += static_cast<double>(state.at(head, v, k)) * state.at(head, v, k);
        EXPECT_NEAR(sum, kSquares[head], 5e-6);
    }
}

}  // namespace
}  // namespace pantheon::test

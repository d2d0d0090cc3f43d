// The backend `ref` against the formulas in double, over shapes that tell neighbouring mistakes apart.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/model/qwen35moe/double_model.h"
#include "tests/model/qwen35moe/stepper.h"

namespace pantheon::test {
namespace {

// f32 activations against f64 ones, relative to the size of the values: rounding noise stays below 1e-6, the
// mildest of the known mistakes (state kept in half precision) moves the logits by 1e-3.
constexpr double kActivationsF32 = 1e-5;
constexpr SlotId kSlot{1};

template <class Have, class Want>
double worst(const Have& have, const Want& want) {
    double scale = 1;
    for (const double value : want) scale = std::max(scale, std::fabs(value));
    double largest = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
        const double difference = std::fabs(static_cast<double>(have[i]) - want[i]) / scale;
        if (std::isnan(difference)) return difference;
        largest = std::max(largest, difference);
    }
    return largest;
}

class DoubleModelTest : public testing::TestWithParam<TinyShape> {};

TEST_P(DoubleModelTest, RefMatchesTheFormulas) {
    const TinyModel tiny = tiny_model(GetParam());
    const auto tokens = random_tokens(40, GetParam().n_vocab, 7);
    const DoubleTrace want = run_in_double(tiny, tokens);
    Stepper stepper(tiny, 2);
    const Rows logits = stepper.sequence(kSlot, tokens, 13);

    ASSERT_EQ(logits.size(), tokens.size());
    for (std::size_t t = 0; t < tokens.size(); ++t) {
        SCOPED_TRACE("position " + std::to_string(t));
        for (int l = 0; l < GetParam().n_layer; ++l) {
            const std::size_t layer = static_cast<std::size_t>(l);
            EXPECT_EQ(stepper.recorder.experts[l][t], want.experts[layer][t]) << "layer " << l;
            EXPECT_LE(worst(stepper.recorder.blocks[l][t], want.after_block[layer][t]), kActivationsF32)
                << "layer " << l;
        }
        EXPECT_LE(worst(stepper.recorder.hidden[t], want.post_norm[t]), kActivationsF32);
        ASSERT_EQ(logits[t].size(), want.logits[t].size());
        ASSERT_LE(worst(logits[t], want.logits[t]), kActivationsF32);
    }
    for (std::size_t l = 0; l < want.state.size(); ++l) {
        EXPECT_LE(worst(stepper.slots.gdn_state(kSlot, static_cast<int>(l)).data, want.state[l]),
                  kActivationsF32);
        EXPECT_LE(worst(stepper.slots.conv_state(kSlot, static_cast<int>(l)), want.conv[l]), kActivationsF32);
    }
}

INSTANTIATE_TEST_SUITE_P(Shapes, DoubleModelTest, testing::ValuesIn(all_tiny_shapes()),
                         [](const auto& tested) { return tested.param.label; });

TEST(DoubleModelLongTest, StatesDoNotDriftOverFiveHundredTokens) {
    TinyShape shape;
    shape.has_nextn = false;
    const TinyModel tiny = tiny_model(shape);
    const auto tokens = random_tokens(500, shape.n_vocab, 3);
    const DoubleTrace want = run_in_double(tiny, tokens);
    Stepper stepper(tiny, 2);
    const Rows logits = stepper.sequence(kSlot, tokens, 64);
    for (const std::size_t t : {99u, 299u, 499u})
        EXPECT_LE(worst(logits[t], want.logits[t]), kActivationsF32) << "position " << t;
}

}  // namespace
}  // namespace pantheon::test

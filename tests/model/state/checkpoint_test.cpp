// Checkpoints of slots: nothing that happens to a slot changes a checkpoint or another slot, and all memory
// comes back. The property test runs random histories beside a model that simply copies everything.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <random>

#include "kernels/quant/dequantize.h"
#include "model/state/slot_store.h"

namespace pantheon::model {
namespace {

constexpr int kGdnLayers = 2, kAttentionLayers = 2, kHeads = 2, kHeadDim = 4;

StateShape shape_of_test() {
    StateShape shape;
    shape.n_gdn_layers = kGdnLayers;
    shape.conv_floats = 6;
    shape.gdn_floats = 8;
    shape.gdn_head_dim = 2;
    shape.n_attention_layers = kAttentionLayers;
    shape.n_head_kv = kHeads;
    shape.head_dim = kHeadDim;
    return shape;
}

/// The first and the last rows are kept once more, in another format.
StateShape shape_with_halves() {
    StateShape shape = shape_of_test();
    shape.kv_sink = 5;
    shape.kv_window = 30;
    return shape;
}

std::uint64_t block_bytes() {
    return shape_of_test().kv_bytes_per_page_row();
}

/// What a sequence must hold: the "tokens" that made it.
using History = std::vector<int>;

float row_value(const History& history, std::size_t row, int layer, int head, bool is_v) {
    return static_cast<float>(history[row] * 16 + layer * 4 + head * 2 + (is_v ? 1 : 0));
}

/// Depends on the whole history, like a recurrent state.
float state_value(const History& history, int layer, int i) {
    unsigned hash = 17;
    for (const int token : history) hash = hash * 31 + static_cast<unsigned>(token);
    return static_cast<float>((hash + static_cast<unsigned>(layer * 8 + i)) % 1000003);
}

/// A step: appends tokens to what the slot holds.
void advance(SlotStore& slots, SlotId slot, History& history, const History& more) {
    ASSERT_TRUE(slots.reserve(slot, static_cast<std::int32_t>(more.size())));
    const std::size_t begin = history.size();
    history.insert(history.end(), more.begin(), more.end());
    for (int layer = 0; layer < kAttentionLayers; ++layer)
        for (std::size_t row = begin; row < history.size(); ++row)
            for (int head = 0; head < kHeads; ++head)
                for (const bool is_v : {false, true}) {
                    const kernels::KvView view = slots.kv(slot, layer);
                    const auto r = static_cast<std::int64_t>(row);
                    std::byte* to = is_v ? view.v_row(r, head) : view.k_row(r, head);
                    const std::vector<float> values(kHeadDim, row_value(history, row, layer, head, is_v));
                    std::memcpy(to, values.data(), kHeadDim * sizeof(float));
                    if (!view.half_page(r, head)) continue;
                    std::byte* half = is_v ? view.half_v_row(r, head) : view.half_k_row(r, head);
                    std::memcpy(half, values.data(), kHeadDim * sizeof(float) / 2);
                }
    for (int layer = 0; layer < kGdnLayers; ++layer) {
        for (int i = 0; i < 6; ++i) slots.conv_state(slot, layer)[i] = state_value(history, layer, i);
        for (int i = 0; i < 8; ++i) slots.gdn_state(slot, layer).data[i] = state_value(history, layer, i + 6);
    }
    slots.commit(slot, static_cast<std::int32_t>(more.size()));
}

void expect_holds(SlotStore& slots, SlotId slot, const History& history) {
    ASSERT_EQ(slots.length(slot), static_cast<std::int32_t>(history.size()));
    for (int layer = 0; layer < kAttentionLayers; ++layer)
        for (std::size_t row = 0; row < history.size(); ++row)
            for (int head = 0; head < kHeads; ++head) {
                const kernels::KvView view = slots.kv(slot, layer);
                float k = 0, v = 0;
                std::memcpy(&k, view.k_row(static_cast<std::int64_t>(row), head), sizeof(float));
                std::memcpy(&v, view.v_row(static_cast<std::int64_t>(row), head), sizeof(float));
                ASSERT_EQ(k, row_value(history, row, layer, head, false)) << "row " << row;
                ASSERT_EQ(v, row_value(history, row, layer, head, true)) << "row " << row;
                // What the next query reads of the other format.
                const auto r = static_cast<std::int64_t>(row);
                const bool is_half =
                    r < view.sink || static_cast<std::int64_t>(history.size()) - r < view.window;
                if (!view.half_pages || !is_half) continue;
                ASSERT_TRUE(view.half_page(r, head)) << "row " << row;
                std::memcpy(&k, view.half_k_row(r, head), sizeof(float));
                std::memcpy(&v, view.half_v_row(r, head), sizeof(float));
                ASSERT_EQ(k, row_value(history, row, layer, head, false)) << "f16 row " << row;
                ASSERT_EQ(v, row_value(history, row, layer, head, true)) << "f16 row " << row;
            }
    if (history.empty()) return;
    for (int layer = 0; layer < kGdnLayers; ++layer) {
        for (int i = 0; i < 6; ++i)
            ASSERT_EQ(slots.conv_state(slot, layer)[i], state_value(history, layer, i));
        for (int i = 0; i < 8; ++i)
            ASSERT_EQ(slots.gdn_state(slot, layer).data[i], state_value(history, layer, i + 6));
    }
}

History numbers(int n, int first = 1) {
    History history(static_cast<std::size_t>(n));
    for (int i = 0; i < n; ++i) history[static_cast<std::size_t>(i)] = first + i;
    return history;
}

TEST(CheckpointTest, TakingOneAndStartingFromItCopiesNothing) {
    SlotStore slots(shape_of_test(), 2, 500);
    History history;
    ASSERT_TRUE(slots.bind(SlotId{0}));
    advance(slots, SlotId{0}, history, numbers(100));
    const auto checkpoint = slots.snapshot(SlotId{0});
    ASSERT_TRUE(checkpoint);
    EXPECT_EQ((*checkpoint)->length(), 100);
    EXPECT_EQ((*checkpoint)->kv_blocks().size(), 2U);
    ASSERT_TRUE(slots.restore(SlotId{1}, **checkpoint));
    EXPECT_EQ(slots.gdn_state(SlotId{0}, 0).data, slots.gdn_state(SlotId{1}, 0).data);
    EXPECT_EQ(slots.kv(SlotId{0}, 1).k_row(99, 1), slots.kv(SlotId{1}, 1).k_row(99, 1));
    EXPECT_EQ(slots.kv_used_bytes(), 2 * block_bytes()) << "shared blocks count once";
}

TEST(CheckpointTest, AFullPageIsSharedForEverAndAPartialOneIsCopiedAtAFork) {
    SlotStore slots(shape_of_test(), 2, 500);
    History first;
    ASSERT_TRUE(slots.bind(SlotId{0}));
    advance(slots, SlotId{0}, first, numbers(100));
    const auto checkpoint = slots.snapshot(SlotId{0});
    ASSERT_TRUE(checkpoint);
    History second = first;
    ASSERT_TRUE(slots.restore(SlotId{1}, **checkpoint));
    advance(slots, SlotId{0}, first, numbers(40, 1000));
    advance(slots, SlotId{1}, second, numbers(40, 2000));
    EXPECT_EQ(slots.kv(SlotId{0}, 0).k_row(63, 0), slots.kv(SlotId{1}, 0).k_row(63, 0));
    EXPECT_NE(slots.kv(SlotId{0}, 0).k_row(64, 0), slots.kv(SlotId{1}, 0).k_row(64, 0));
    expect_holds(slots, SlotId{0}, first);
    expect_holds(slots, SlotId{1}, second);
    slots.release(SlotId{1});
    ASSERT_TRUE(slots.restore(SlotId{1}, **checkpoint));
    expect_holds(slots, SlotId{1}, numbers(100));
}

TEST(CheckpointTest, WhoHoldsAStateAloneGoesOnInPlace) {
    SlotStore slots(shape_of_test(), 1, 500);
    History history;
    ASSERT_TRUE(slots.bind(SlotId{0}));
    advance(slots, SlotId{0}, history, numbers(70));
    auto checkpoint = slots.snapshot(SlotId{0});
    ASSERT_TRUE(checkpoint);
    const float* image = slots.gdn_state(SlotId{0}, 0).data;
    const std::byte* row = slots.kv(SlotId{0}, 0).k_row(69, 0);
    checkpoint = CheckpointPtr();
    advance(slots, SlotId{0}, history, {5});
    EXPECT_EQ(slots.gdn_state(SlotId{0}, 0).data, image);
    EXPECT_EQ(slots.kv(SlotId{0}, 0).k_row(69, 0), row);
    expect_holds(slots, SlotId{0}, history);
}

TEST(CheckpointTest, AReservationThatIsNeverUsedBelongsToNoCheckpoint) {
    SlotStore slots(shape_of_test(), 1, 500);
    History history;
    ASSERT_TRUE(slots.bind(SlotId{0}));
    advance(slots, SlotId{0}, history, numbers(10));
    ASSERT_TRUE(slots.reserve(SlotId{0}, 300));
    const auto checkpoint = slots.snapshot(SlotId{0});
    ASSERT_TRUE(checkpoint);
    EXPECT_EQ((*checkpoint)->kv_blocks().size(), 1U);
}

TEST(CheckpointTest, WhatCannotBeDoneIsRefusedAndChangesNothing) {
    SlotStore slots(shape_of_test(), 2, 100);
    StateShape other_shape = shape_of_test();
    other_shape.kv_type = kernels::KvRowType::f16;
    SlotStore others(other_shape, 1, 100);
    EXPECT_EQ(slots.snapshot(SlotId{0}).error().code(), Code::failed_precondition);
    EXPECT_EQ(slots.snapshot(SlotId{9}).error().code(), Code::failed_precondition);
    ASSERT_TRUE(others.bind(SlotId{0}));
    const auto foreign = others.snapshot(SlotId{0});
    ASSERT_TRUE(foreign);
    EXPECT_EQ(slots.restore(SlotId{0}, **foreign).error().code(), Code::invalid_argument);
    EXPECT_FALSE(slots.is_bound(SlotId{0}));
    ASSERT_TRUE(slots.bind(SlotId{0}));
    const auto own = slots.snapshot(SlotId{0});
    ASSERT_TRUE(own);
    EXPECT_EQ(slots.restore(SlotId{0}, **own).error().code(), Code::failed_precondition);
    EXPECT_EQ(slots.restore(SlotId{2}, **own).error().code(), Code::invalid_argument);
}

TEST(CheckpointTest, ACheckpointOutlivesItsStore) {
    CheckpointPtr kept;
    {
        SlotStore slots(shape_of_test(), 1, 100);
        History history;
        ASSERT_TRUE(slots.bind(SlotId{0}));
        advance(slots, SlotId{0}, history, numbers(70));
        kept = *slots.snapshot(SlotId{0});
    }
    EXPECT_EQ(kept->length(), 70);
}

TEST(CheckpointTest, HalfRowsAreKeptAtBothEndsAndNowhereElse) {
    SlotStore slots(shape_with_halves(), 2, 500);
    const std::uint64_t half_bytes = shape_with_halves().in_half().kv_bytes_per_page_row();
    History history;
    ASSERT_TRUE(slots.bind(SlotId{0}));
    advance(slots, SlotId{0}, history, numbers(400));
    // Seven pages; f16 ones for rows 0 … 4 and 370 … 399.
    EXPECT_EQ(slots.kv_used_bytes(), 7 * block_bytes() + 3 * half_bytes);
    EXPECT_LE(slots.kv_used_bytes(), slots.kv_pool_bytes() / 2);
    const auto checkpoint = slots.snapshot(SlotId{0});
    ASSERT_TRUE(checkpoint);
    advance(slots, SlotId{0}, history, numbers(100, 3000));
    ASSERT_TRUE(slots.restore(SlotId{1}, **checkpoint));
    expect_holds(slots, SlotId{1}, numbers(400));
}

/// A store whose images can be kept in f16, with a sequence of so many tokens in slot 0.
struct RoundingStore {
    explicit RoundingStore(int n_tokens) {
        EXPECT_TRUE(slots.bind(SlotId{0}));
        advance(slots, SlotId{0}, history, numbers(n_tokens));
    }
    kernels::ThreadTeam team{2};
    kernels::Exec exec{team};
    SlotStore slots{shape_of_test(), 2, 500, {}, {0, {}, &exec}};
    History history;
};

TEST(RoundedCheckpointTest, HoldsHalfTheBytesAndGivesEachValueAsAHalfKeepsIt) {
    RoundingStore store(100);
    SlotStore& slots = store.slots;
    for (int layer = 0; layer < kGdnLayers; ++layer) {
        for (int i = 0; i < 6; ++i)
            slots.conv_state(SlotId{0}, layer)[i] = 1.0F / static_cast<float>(3 + i + 10 * layer);
        for (int i = 0; i < 8; ++i)
            slots.gdn_state(SlotId{0}, layer).data[i] = -1.0F / static_cast<float>(7 + i + 10 * layer);
    }
    const auto kept = slots.snapshot(SlotId{0}, ImageFormat::f16);
    ASSERT_TRUE(kept) << kept.error().to_string();
    const auto& host = dynamic_cast<const HostCheckpoint&>(**kept);
    EXPECT_EQ(host.format(), ImageFormat::f16);
    EXPECT_EQ(host.image, nullptr);
    const std::size_t n_bytes = host.half_image->conv.size() * sizeof(*host.half_image->conv.data()) +
                                host.half_image->gdn.size() * sizeof(*host.half_image->gdn.data());
    EXPECT_EQ(n_bytes, shape_of_test().image_bytes(ImageFormat::f16));
    EXPECT_EQ(2 * n_bytes, shape_of_test().image_bytes());
    ASSERT_TRUE(slots.restore(SlotId{1}, **kept));
    EXPECT_EQ(slots.length(SlotId{1}), 100);
    EXPECT_EQ(slots.kv(SlotId{0}, 1).k_row(99, 1), slots.kv(SlotId{1}, 1).k_row(99, 1)) << "KV is shared";
    const auto rounded = [](float x) { return kernels::half_to_float(kernels::float_to_half(x)); };
    for (int layer = 0; layer < kGdnLayers; ++layer) {
        for (int i = 0; i < 6; ++i)
            EXPECT_EQ(slots.conv_state(SlotId{1}, layer)[i], rounded(slots.conv_state(SlotId{0}, layer)[i]));
        for (int i = 0; i < 8; ++i)
            EXPECT_EQ(slots.gdn_state(SlotId{1}, layer).data[i],
                      rounded(slots.gdn_state(SlotId{0}, layer).data[i]));
    }
    // What was rounded once is not changed by being kept again.
    const auto again = slots.snapshot(SlotId{1}, ImageFormat::f16);
    ASSERT_TRUE(again);
    const auto& second = *dynamic_cast<const HostCheckpoint&>(**again).half_image;
    EXPECT_TRUE(std::equal(second.gdn.begin(), second.gdn.end(), host.half_image->gdn.begin()));
    EXPECT_TRUE(std::equal(second.conv.begin(), second.conv.end(), host.half_image->conv.begin()));
}

TEST(RoundedCheckpointTest, TheSequenceItselfStaysExactAndGoesOnInPlace) {
    RoundingStore store(70);
    SlotStore& slots = store.slots;
    History& history = store.history;
    const float* image = slots.gdn_state(SlotId{0}, 0).data;
    const auto rounded = slots.snapshot(SlotId{0}, ImageFormat::f16);
    ASSERT_TRUE(rounded);
    advance(slots, SlotId{0}, history, numbers(5, 900));
    EXPECT_EQ(slots.gdn_state(SlotId{0}, 0).data, image) << "there is nothing to copy";
    expect_holds(slots, SlotId{0}, history);
    // Beside it an exact one, as of a parked sequence.
    const auto exact = slots.snapshot(SlotId{0});
    ASSERT_TRUE(exact);
    EXPECT_EQ(dynamic_cast<const HostCheckpoint&>(**exact).format(), ImageFormat::f32);
    slots.release(SlotId{0});
    ASSERT_TRUE(slots.restore(SlotId{1}, **exact));
    expect_holds(slots, SlotId{1}, history);
    // A sequence that goes on from the rounded one owns what it got.
    ASSERT_TRUE(slots.restore(SlotId{0}, **rounded));
    image = slots.gdn_state(SlotId{0}, 0).data;
    ASSERT_TRUE(slots.reserve(SlotId{0}, 1));
    EXPECT_EQ(slots.gdn_state(SlotId{0}, 0).data, image);
}

TEST(RoundedCheckpointTest, WhatAHalfCannotHoldIsCutOffAndWhatIsNotFiniteIsNaN) {
    RoundingStore store(10);
    SlotStore& slots = store.slots;
    float* state = slots.gdn_state(SlotId{0}, 1).data;
    state[0] = 1e6F, state[1] = -1e30F, state[2] = 1e-12F;
    slots.conv_state(SlotId{0}, 0)[0] = std::numeric_limits<float>::infinity();
    ASSERT_TRUE(slots.restore(SlotId{1}, **slots.snapshot(SlotId{0}, ImageFormat::f16)));
    state = slots.gdn_state(SlotId{1}, 1).data;
    EXPECT_EQ(state[0], 65504.0F);
    EXPECT_EQ(state[1], -65504.0F);
    EXPECT_EQ(state[2], 0.0F);
    EXPECT_TRUE(std::isnan(slots.conv_state(SlotId{1}, 0)[0]));
}

TEST(RoundedCheckpointTest, AStoreWithoutThreadsForItRefuses) {
    RoundingStore store(10);
    const auto rounded = store.slots.snapshot(SlotId{0}, ImageFormat::f16);
    ASSERT_TRUE(rounded);
    SlotStore plain(shape_of_test(), 1, 500);
    EXPECT_EQ(plain.restore(SlotId{0}, **rounded).error().code(), Code::invalid_argument);
    ASSERT_TRUE(plain.bind(SlotId{0}));
    EXPECT_EQ(plain.snapshot(SlotId{0}, ImageFormat::f16).error().code(), Code::invalid_argument);
}

/// Random forks, moves, releases and drops, beside whole copies of every history.
TEST(CheckpointTest, RandomHistoriesHoldWhatCopiesWouldHold) {
    constexpr int kSlots = 4;
    for (unsigned seed = 1; seed <= 20; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        std::mt19937 random(seed);
        const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
        SlotStore slots(seed % 2 == 0 ? shape_of_test() : shape_with_halves(), kSlots, 400);
        std::map<int, History> bound;
        std::vector<std::pair<CheckpointPtr, History>> kept;
        for (int round = 0; round < 300; ++round) {
            const SlotId slot{below(kSlots)};
            const bool is_bound = bound.contains(slot.value);
            const int action = below(10);
            if (!is_bound) {
                if (action < 5 || kept.empty()) {
                    ASSERT_TRUE(slots.bind(slot));
                    bound[slot.value] = {};
                } else {
                    const auto& [checkpoint, history] =
                        kept[static_cast<std::size_t>(below(static_cast<int>(kept.size())))];
                    ASSERT_TRUE(slots.restore(slot, *checkpoint));
                    bound[slot.value] = history;
                }
            } else if (action < 5) {
                History more(static_cast<std::size_t>(1 + below(70)));
                for (int& token : more) token = below(1000);
                if (bound[slot.value].size() + more.size() <= 400)
                    advance(slots, slot, bound[slot.value], more);
            } else if (action < 7) {
                const auto checkpoint = slots.snapshot(slot);
                ASSERT_TRUE(checkpoint);
                kept.emplace_back(*checkpoint, bound[slot.value]);
            } else if (action == 7) {
                slots.release(slot);
                bound.erase(slot.value);
            } else if (action == 8) {
                const SlotId to{below(kSlots)};
                ASSERT_EQ(slots.move(slot, to).has_value(), !bound.contains(to.value));
                if (!bound.contains(to.value)) {
                    bound[to.value] = std::move(bound[slot.value]);
                    bound.erase(slot.value);
                }
            } else if (!kept.empty()) {
                kept.erase(kept.begin() + below(static_cast<int>(kept.size())));
            }
            if (round % 10 == 0)
                for (const auto& [s, history] : bound) expect_holds(slots, SlotId{s}, history);
        }
        for (auto& [s, history] : bound) slots.release(SlotId{s});
        EXPECT_EQ(slots.kv_used_bytes(), 0U);
        for (const auto& [checkpoint, history] : kept) {
            ASSERT_TRUE(slots.restore(SlotId{0}, *checkpoint));
            expect_holds(slots, SlotId{0}, history);
            slots.release(SlotId{0});
        }
    }
}

}  // namespace
}  // namespace pantheon::model

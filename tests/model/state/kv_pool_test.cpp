// A KV pool of its own size, and sequences of one store in two formats.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "kernels/attention/kv_rows.h"
#include "model/state/slot_store.h"

namespace pantheon::model {
namespace {

using kernels::KvRowType;
using testing::HasSubstr;

constexpr SlotId kA{0}, kB{1}, kC{2};

StateShape shape_in(KvRowType type) {
    StateShape shape;
    shape.n_gdn_layers = 1;
    shape.conv_floats = 4;
    shape.gdn_floats = 4;
    shape.gdn_head_dim = 2;
    shape.n_attention_layers = 2;
    shape.n_head_kv = 2;
    shape.head_dim = 40;
    shape.kv_type = type;
    return shape;
}

StateShape in_q4_0() {
    StateShape shape = shape_in(KvRowType::q4_0);
    shape.kv_sink = 5;
    shape.kv_window = 30;
    return shape;
}

CheckpointSizes sizes_of(const StateShape& shape) {
    CheckpointSizes sizes{shape.image_bytes(), shape.kv_bytes_per_page_row(), kernels::kKvPageRows};
    if (shape.keeps_half()) sizes.half_block_bytes = shape.in_half().kv_bytes_per_page_row();
    sizes.sink = shape.kv_sink;
    sizes.window = shape.kv_window;
    return sizes;
}

std::vector<float> values(int row, int layer, int head, bool is_v) {
    std::vector<float> x(40);
    for (std::size_t i = 0; i < x.size(); ++i)
        x[i] = static_cast<float>(
                   (row * 7 + layer * 31 + head * 3 + (is_v ? 11 : 0) + static_cast<int>(i) * 5) % 97) -
               48.0f;
    return x;
}

/// A step of n rows, if there is room.
Status grow(SlotStore& slots, SlotId slot, int n) {
    if (Status ok = slots.reserve(slot, n); !ok) return ok;
    const int begin = slots.length(slot);
    for (int layer = 0; layer < 2; ++layer) {
        const kernels::KvView view = slots.kv(slot, layer);
        for (int row = begin; row < begin + n; ++row)
            for (int head = 0; head < 2; ++head) {
                const auto k = values(row, layer, head, false), v = values(row, layer, head, true);
                kernels::store_kv_row(view.type, k.data(), 40, view.k_row(row, head));
                kernels::store_kv_row(view.type, v.data(), 40, view.v_row(row, head));
                if (!view.half_page(row, head)) continue;
                kernels::store_kv_row(KvRowType::f16, k.data(), 40, view.half_k_row(row, head));
                kernels::store_kv_row(KvRowType::f16, v.data(), 40, view.half_v_row(row, head));
            }
    }
    slots.commit(slot, n);
    return {};
}

TEST(CheckpointSizesTest, CountWhatASequenceHoldsAtEveryLength) {
    for (const auto& [sink, window] : {std::pair(0, 0), {5, 0}, {0, 30}, {5, 30}, {70, 128}, {64, 64}}) {
        SCOPED_TRACE(std::to_string(sink) + ", " + std::to_string(window));
        StateShape shape = shape_in(KvRowType::q4_0);
        shape.kv_sink = sink;
        shape.kv_window = window;
        const CheckpointSizes sizes = sizes_of(shape);
        for (const int n_step : {1, 17, 150}) {
            SlotStore slots(shape, 1, 1000);
            ASSERT_TRUE(slots.bind(kA));
            while (slots.length(kA) + n_step <= 1000) {
                ASSERT_TRUE(slots.reserve(kA, n_step));
                EXPECT_LE(slots.kv_used_bytes(), sizes.kv_bytes_growing(slots.length(kA) + n_step, n_step));
                slots.commit(kA, n_step);
                ASSERT_EQ(slots.kv_used_bytes(), sizes.kv_bytes(slots.length(kA))) << slots.length(kA);
            }
        }
    }
}

TEST(KvPoolTest, WhatDoesNotFitIsRefusedAndChangesNothing) {
    for (const StateShape& shape : {shape_in(KvRowType::f16), in_q4_0()}) {
        const std::uint64_t pool = sizes_of(shape).kv_bytes_growing(130, 130) + sizes_of(shape).kv_bytes(64);
        SlotStore slots(shape, 3, 1000, {}, {pool, {}});
        EXPECT_EQ(slots.kv_pool_bytes(), pool);
        ASSERT_TRUE(slots.bind(kA));
        ASSERT_TRUE(slots.bind(kB));
        ASSERT_TRUE(grow(slots, kA, 130));
        ASSERT_TRUE(grow(slots, kB, 64));
        const std::uint64_t used = slots.kv_used_bytes();
        const Status full = slots.reserve(kB, 130);
        ASSERT_FALSE(full);
        EXPECT_EQ(full.error().code(), Code::resource_exhausted);
        EXPECT_THAT(full.error().message(), HasSubstr("slot 1"));
        EXPECT_EQ(slots.length(kB), 64);
        EXPECT_EQ(slots.kv_used_bytes(), used);
        EXPECT_TRUE(slots.reserve(kA, 1)) << "room that it has already";
        slots.release(kA);
        EXPECT_TRUE(grow(slots, kB, 130));
        EXPECT_LE(slots.kv_used_bytes(), pool);
    }
}

TEST(KvPoolTest, WhatSequencesShareCountsOnceUntilOneWritesToIt) {
    const std::uint64_t block = shape_in(KvRowType::f16).kv_bytes_per_page_row();
    SlotStore slots(shape_in(KvRowType::f16), 3, 1000, {}, {4 * block, {}});
    ASSERT_TRUE(slots.bind(kA));
    ASSERT_TRUE(grow(slots, kA, 150));  // two whole blocks and one with 22 rows
    const CheckpointPtr kept = *slots.snapshot(kA);
    ASSERT_TRUE(slots.restore(kB, *kept));
    ASSERT_TRUE(slots.restore(kC, *kept));
    EXPECT_EQ(slots.kv_used_bytes(), 3 * block);
    ASSERT_TRUE(grow(slots, kB, 1));
    EXPECT_EQ(slots.kv_used_bytes(), 4 * block) << "its own copy of the last block";
    EXPECT_FALSE(grow(slots, kC, 1));
    slots.release(kA);
    EXPECT_TRUE(grow(slots, kC, 1))
        << "nobody else's sequence has the block any more: the copy takes its place";
    EXPECT_EQ(slots.kv_used_bytes(), 4 * block);
}

TEST(KvPoolTest, AStateThatIsThereAlreadyComesBackEvenWhenThePoolIsFull) {
    const std::uint64_t block = shape_in(KvRowType::f16).kv_bytes_per_page_row();
    SlotStore slots(shape_in(KvRowType::f16), 2, 1000, {}, {2 * block, {}});
    ASSERT_TRUE(slots.bind(kA));
    ASSERT_TRUE(grow(slots, kA, 64));
    const CheckpointPtr parked = *slots.snapshot(kA);
    slots.release(kA);
    EXPECT_EQ(slots.kv_used_bytes(), 0u) << "the checkpoint's are not the pool's";
    ASSERT_TRUE(slots.bind(kB));
    ASSERT_TRUE(grow(slots, kB, 128));
    ASSERT_TRUE(slots.restore(kA, *parked));
    EXPECT_FALSE(grow(slots, kA, 1));
    slots.release(kB);
    EXPECT_TRUE(grow(slots, kA, 1));
}

/// What each row must be: written in the format of the view, in f16 where that is read, after it had been in
/// `before`.
void expect_rows(SlotStore& slots, SlotId slot, int n_rows, KvRowType before) {
    for (int layer = 0; layer < 2; ++layer) {
        const kernels::KvView view = slots.kv(slot, layer);
        for (int row = 0; row < n_rows; ++row)
            for (int head = 0; head < 2; ++head)
                for (const bool is_v : {false, true}) {
                    std::vector<float> x = values(row, layer, head, is_v);
                    std::vector<std::byte> bytes(160);
                    kernels::store_kv_row(before, x.data(), 40, bytes.data());
                    kernels::load_kv_row(before, bytes.data(), 40, x.data());
                    const auto expect_is = [&](KvRowType type, const std::byte* have) {
                        kernels::store_kv_row(type, x.data(), 40, bytes.data());
                        ASSERT_EQ(std::memcmp(have, bytes.data(), kernels::kv_row_bytes(type, 40)), 0)
                            << "row " << row;
                    };
                    expect_is(view.type, is_v ? view.v_row(row, head) : view.k_row(row, head));
                    const bool is_half = row < view.sink || n_rows - row < view.window;
                    if (view.type != KvRowType::q4_0 || !is_half) continue;
                    ASSERT_TRUE(view.half_page(row, head));
                    expect_is(KvRowType::f16, is_v ? view.half_v_row(row, head) : view.half_k_row(row, head));
                }
    }
}

TEST(TwoFormatsTest, SequencesOfBothStandSideBySide) {
    SlotStore slots(shape_in(KvRowType::f32), 3, 1000, {}, {0, in_q4_0()});
    ASSERT_TRUE(slots.bind(kA));
    ASSERT_TRUE(slots.bind(kB, /*is_other=*/true));
    ASSERT_TRUE(grow(slots, kA, 100));
    ASSERT_TRUE(grow(slots, kB, 100));
    EXPECT_EQ(slots.kv(kA, 0).type, KvRowType::f32);
    EXPECT_EQ(slots.kv(kB, 0).type, KvRowType::q4_0);
    EXPECT_EQ(slots.kv_used_bytes(),
              sizes_of(shape_in(KvRowType::f32)).kv_bytes(100) + sizes_of(in_q4_0()).kv_bytes(100));
    const CheckpointPtr kept = *slots.snapshot(kB);
    ASSERT_TRUE(slots.restore(kC, *kept));
    EXPECT_EQ(slots.kv(kC, 0).type, KvRowType::q4_0) << "as the checkpoint has it";
    expect_rows(slots, kC, 100, KvRowType::f32);
    slots.release(kA);
    slots.release(kB);
    slots.release(kC);
    EXPECT_EQ(slots.kv_used_bytes(), 0u);
}

TEST(TwoFormatsTest, AConvertedSequenceHasTheSameRowsInLessMemoryAndOthersNoticeNothing) {
    for (const KvRowType type : {KvRowType::f32, KvRowType::f16, KvRowType::q8_0}) {
        SlotStore slots(shape_in(type), 3, 1000, {}, {0, in_q4_0()});
        ASSERT_TRUE(slots.bind(kA));
        ASSERT_TRUE(grow(slots, kA, 500));
        const CheckpointPtr kept = *slots.snapshot(kA);
        ASSERT_TRUE(slots.restore(kB, *kept));
        slots.gdn_state(kA, 0).data[1] = 7;
        const std::uint64_t before = sizes_of(shape_in(type)).kv_bytes(500);
        const std::uint64_t after = sizes_of(in_q4_0()).kv_bytes(500);
        EXPECT_LT(after, before);
        ASSERT_TRUE(slots.convert(kA));
        EXPECT_EQ(slots.kv_used_bytes(), before + after);
        EXPECT_EQ(slots.length(kA), 500);
        EXPECT_EQ(slots.gdn_state(kA, 0).data[1], 7);
        expect_rows(slots, kA, 500, type);
        expect_rows(slots, kB, 500, type);
        ASSERT_TRUE(slots.convert(kA)) << "once more is nothing";
        ASSERT_TRUE(grow(slots, kA, 100));
        EXPECT_EQ(slots.kv_used_bytes(), before + sizes_of(in_q4_0()).kv_bytes(600));
        slots.release(kB);
        EXPECT_EQ(slots.kv_used_bytes(), sizes_of(in_q4_0()).kv_bytes(600));
        ASSERT_TRUE(slots.restore(kC, *kept));
        expect_rows(slots, kC, 500, type);
    }
}

TEST(TwoFormatsTest, ASequenceThatSlidesIsConvertedInPlace) {
    const int n_ctx = 200;
    SlotStore slots(shape_in(KvRowType::f16), 1, n_ctx, 5, {0, in_q4_0()});
    ASSERT_TRUE(slots.bind(kA));
    ASSERT_TRUE(grow(slots, kA, 150));
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(grow(slots, kA, 100));
    const kernels::KvView before = slots.kv(kA, 0);
    ASSERT_GT(before.n_gone, 0);
    ASSERT_TRUE(slots.convert(kA));
    const kernels::KvView after = slots.kv(kA, 0);
    EXPECT_EQ(after.n_gone, before.n_gone);
    EXPECT_EQ(after.reach, before.reach);
    for (const int row : {0, 4, 649 - 30, 649}) {
        std::vector<float> x = values(row, 0, 1, false);
        std::vector<std::byte> bytes(80);
        kernels::store_kv_row(KvRowType::q4_0, x.data(), 40, bytes.data());
        EXPECT_EQ(std::memcmp(after.k_row(row, 1), bytes.data(), kernels::kv_row_bytes(KvRowType::q4_0, 40)),
                  0)
            << row;
    }
    EXPECT_TRUE(grow(slots, kA, 300));
}

TEST(TwoFormatsTest, ConvertingNeedsASequence) {
    SlotStore slots(shape_in(KvRowType::f16), 1, 100, {}, {0, in_q4_0()});
    EXPECT_EQ(slots.convert(kA).error().code(), Code::failed_precondition);
    EXPECT_EQ(slots.convert(SlotId{9}).error().code(), Code::failed_precondition);
}

}  // namespace
}  // namespace pantheon::model

#include "model/state/slot_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace pantheon::model {
namespace {

using testing::HasSubstr;

StateShape small_shape() {
    StateShape shape;
    shape.n_gdn_layers = 2;
    shape.conv_floats = 12;
    shape.gdn_floats = 2 * 3 * 3;
    shape.gdn_head_dim = 3;
    shape.n_attention_layers = 2;
    shape.n_head_kv = 3;
    shape.head_dim = 5;
    return shape;
}

TEST(SlotStoreTest, AFreshSequenceIsEmptyAndZero) {
    SlotStore slots(small_shape(), 2, 100);
    const SlotId slot{1};
    EXPECT_EQ(slots.length(slot), -1);
    ASSERT_TRUE(slots.bind(slot));
    EXPECT_EQ(slots.length(slot), 0);
    for (int layer = 0; layer < 2; ++layer) {
        for (int i = 0; i < 12; ++i) EXPECT_EQ(slots.conv_state(slot, layer)[i], 0.0f);
        for (int i = 0; i < 18; ++i) EXPECT_EQ(slots.gdn_state(slot, layer).data[i], 0.0f);
    }
    EXPECT_EQ(slots.kv_used_bytes(), 0u);
}

TEST(SlotStoreTest, ABoundSlotIsNotBoundAgainAndAFreedOneStartsFromZero) {
    SlotStore slots(small_shape(), 1, 100);
    const SlotId slot{0};
    ASSERT_TRUE(slots.bind(slot));
    EXPECT_EQ(slots.bind(slot).error().code(), Code::failed_precondition);
    slots.gdn_state(slot, 1).at(1, 2, 2) = 5;
    slots.conv_state(slot, 0)[3] = 6;
    ASSERT_TRUE(slots.reserve(slot, 3));
    slots.commit(slot, 3);
    slots.release(slot);
    slots.release(slot);
    EXPECT_EQ(slots.length(slot), -1);
    ASSERT_TRUE(slots.bind(slot));
    EXPECT_EQ(slots.length(slot), 0);
    EXPECT_EQ(slots.gdn_state(slot, 1).at(1, 2, 2), 0.0f);
    EXPECT_EQ(slots.conv_state(slot, 0)[3], 0.0f);
}

TEST(SlotStoreTest, SlotsOutOfRangeAreRefused) {
    SlotStore slots(small_shape(), 2, 100);
    for (const int bad : {-1, 2, 1000}) {
        EXPECT_EQ(slots.bind(SlotId{bad}).error().code(), Code::invalid_argument);
        EXPECT_THAT(slots.move(SlotId{bad}, SlotId{0}).error().message(), HasSubstr("there are 2 slots"));
        slots.release(SlotId{bad});
        EXPECT_EQ(slots.length(SlotId{bad}), -1);
    }
}

TEST(SlotStoreTest, MovingHandsOverEverythingWithoutCopying) {
    SlotStore slots(small_shape(), 3, 200);
    ASSERT_TRUE(slots.bind(SlotId{0}));
    ASSERT_TRUE(slots.reserve(SlotId{0}, 70));
    slots.commit(SlotId{0}, 70);
    slots.gdn_state(SlotId{0}, 1).at(1, 0, 2) = 3.5f;
    const float* gdn = slots.gdn_state(SlotId{0}, 0).data;
    const std::byte* row = slots.kv(SlotId{0}, 1).k_row(69, 2);
    ASSERT_TRUE(slots.move(SlotId{0}, SlotId{2}));
    EXPECT_EQ(slots.length(SlotId{0}), -1);
    EXPECT_EQ(slots.length(SlotId{2}), 70);
    EXPECT_EQ(slots.gdn_state(SlotId{2}, 0).data, gdn);
    EXPECT_EQ(slots.gdn_state(SlotId{2}, 1).at(1, 0, 2), 3.5f);
    EXPECT_EQ(slots.kv(SlotId{2}, 1).k_row(69, 2), row);

    EXPECT_EQ(slots.move(SlotId{0}, SlotId{1}).error().code(), Code::failed_precondition);
    ASSERT_TRUE(slots.bind(SlotId{1}));
    EXPECT_EQ(slots.move(SlotId{1}, SlotId{2}).error().code(), Code::failed_precondition);
    EXPECT_EQ(slots.move(SlotId{1}, SlotId{1}).error().code(), Code::failed_precondition);
    EXPECT_EQ(slots.length(SlotId{1}), 0) << "a refused move changes nothing";
}

TEST(SlotStoreTest, PagesComeWithTheRowsAndStayWhereTheyAre) {
    for (const kernels::KvRowType type : {kernels::KvRowType::f32, kernels::KvRowType::f16}) {
        StateShape shape = small_shape();
        shape.kv_type = type;
        SlotStore slots(shape, 2, 1000);
        const SlotId slot{0};
        ASSERT_TRUE(slots.bind(slot));
        const std::uint64_t page = 2 * 64 * 5 * (type == kernels::KvRowType::f32 ? 4 : 2);
        const std::uint64_t per_64_rows = 2 * 3 * page;  // attention layers · KV heads
        EXPECT_EQ(slots.kv_pool_bytes(), 2 * 16 * per_64_rows);
        const struct { int grow, pages; } kSteps[] = {{1, 1}, {63, 1}, {1, 2}, {64, 3}, {300, 7}};
        const std::byte* first = nullptr;
        for (const auto& step : kSteps) {
            ASSERT_TRUE(slots.reserve(slot, step.grow));
            slots.commit(slot, step.grow);
            EXPECT_EQ(slots.kv_used_bytes(), static_cast<std::uint64_t>(step.pages) * per_64_rows);
            if (!first) first = slots.kv(slot, 0).k_row(0, 0);
            EXPECT_EQ(slots.kv(slot, 0).k_row(0, 0), first);
        }
        // All rows of all layers and heads are apart.
        std::set<const std::byte*> rows;
        for (int layer = 0; layer < 2; ++layer)
            for (int head = 0; head < 3; ++head)
                for (int r = 0; r < slots.length(slot); ++r) {
                    EXPECT_TRUE(rows.insert(slots.kv(slot, layer).k_row(r, head)).second);
                    EXPECT_TRUE(rows.insert(slots.kv(slot, layer).v_row(r, head)).second);
                }
    }
}

TEST(SlotStoreTest, AReservationAloneDoesNotLengthenTheSequence) {
    SlotStore slots(small_shape(), 1, 100);
    ASSERT_TRUE(slots.bind(SlotId{0}));
    ASSERT_TRUE(slots.reserve(SlotId{0}, 80));
    EXPECT_EQ(slots.length(SlotId{0}), 0);
}

TEST(SlotStoreTest, AStateThatNoMemoryHoldsIsRefused) {
    StateShape shape = small_shape();
    shape.gdn_floats = std::size_t{1} << 61;
    SlotStore slots(shape, 1, 100);
    EXPECT_EQ(slots.bind(SlotId{0}).error().code(), Code::resource_exhausted);
    EXPECT_FALSE(slots.is_bound(SlotId{0}));
}

}  // namespace
}  // namespace pantheon::model

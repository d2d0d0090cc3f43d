#include "actors/step_planner.h"

#include <gtest/gtest.h>

namespace pantheon::actors {
namespace {

SlotProgress slot(int id, std::int64_t known, std::int64_t fed, bool may_sample = true, bool is_score = false,
                  int priority = 0) {
    return {SlotId(id), TicketId(static_cast<std::uint64_t>(id) + 100), priority, known, fed, may_sample,
            is_score};
}

struct Case {
    const char* name;
    std::vector<SlotProgress> slots;
    std::int64_t chunk;
    std::vector<PlannedRows> want;
};

TEST(PlanStepTest, FollowsTheRules) {
    const Case cases[] = {
        {"nothing to do", {}, 8, {}},
        {"one decode row", {slot(0, 5, 4)}, 8, {{SlotId(0), 4, 5, true}}},
        {"decode rows of all slots share the step",
         {slot(0, 5, 4), slot(2, 9, 8)},
         8,
         {{SlotId(0), 4, 5, true}, {SlotId(2), 8, 9, true}}},
        {"a prompt is cut to the chunk", {slot(0, 100, 0)}, 8, {{SlotId(0), 0, 8, false}}},
        {"the last chunk samples", {slot(0, 100, 96)}, 8, {{SlotId(0), 96, 100, true}}},
        {"one prefill beside decode, the oldest",
         {slot(1, 50, 0), slot(0, 60, 0), slot(2, 7, 6)},
         4,
         {{SlotId(2), 6, 7, true}, {SlotId(0), 0, 4, false}}},
        {"a higher priority prefills first",
         {slot(0, 60, 0), slot(1, 50, 0, true, false, 3)},
         4,
         {{SlotId(1), 0, 4, false}}},
        {"without permission nothing is decoded", {slot(0, 5, 4, false)}, 8, {}},
        {"without permission a prompt stops before its last token",
         {slot(0, 5, 0, false)},
         8,
         {{SlotId(0), 0, 4, false}}},
        {"score goes through all tokens and never samples",
         {slot(0, 5, 0, true, true)},
         8,
         {{SlotId(0), 0, 5, false}}},
        {"a score row alone is still a prefill", {slot(0, 5, 4, true, true)}, 8, {{SlotId(0), 4, 5, false}}},
        {"without a chunk nothing is read", {slot(0, 5, 0), slot(1, 9, 8)}, 0, {{SlotId(1), 8, 9, true}}},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        const auto plan = plan_step(c.slots, ChunkLimits{c.chunk, c.chunk});
        ASSERT_EQ(plan.size(), c.want.size());
        for (std::size_t i = 0; i < plan.size(); ++i) {
            EXPECT_EQ(plan[i].slot, c.want[i].slot);
            EXPECT_EQ(plan[i].begin, c.want[i].begin);
            EXPECT_EQ(plan[i].end, c.want[i].end);
            EXPECT_EQ(plan[i].samples, c.want[i].samples);
        }
    }
}

TEST(PlanStepTest, AScoreJobHasAChunkOfItsOwn) {
    const auto both = plan_step(std::vector{slot(0, 50, 0, true, true)}, ChunkLimits{16, 4});
    ASSERT_EQ(both.size(), 1U);
    EXPECT_EQ(both[0].end, 4);
    EXPECT_TRUE(plan_step(std::vector{slot(0, 50, 0, true, true)}, ChunkLimits{16, 0}).empty());
}

}  // namespace
}  // namespace pantheon::actors

#include "actors/step_planner.h"

#include <gtest/gtest.h>

namespace pantheon::actors {
namespace {

SlotProgress slot(int id, std::int64_t known, std::int64_t fed, bool may_sample = true, bool is_score = false,
                  int priority = 0) {
    SlotProgress s;
    s.slot = SlotId(id);
    s.ticket = TicketId(static_cast<std::uint64_t>(id) + 100);
    s.priority = priority;
    s.n_known = known;
    s.n_fed = fed;
    s.may_sample = may_sample;
    s.is_score = is_score;
    return s;
}
SlotProgress replying(SlotProgress s) {
    s.has_reply = true;
    return s;
}
SlotProgress begun(SlotProgress s, std::int64_t end, bool samples) {
    s.begun = {s.slot, s.n_fed, end, samples};
    return s;
}
SlotProgress stopping(SlotProgress s, std::int64_t stop) {
    s.stop = stop;
    return s;
}

constexpr double kPart = 50, kWhole = 0;  // what PlannedStep::part_ms says

struct Case {
    const char* name;
    std::vector<SlotProgress> slots;
    std::int64_t beside, in_parts;
    double part_ms;
    std::vector<PlannedRows> want;
};

void expect_planned(const Case& c, const ReadLimits& limits) {
    SCOPED_TRACE(c.name);
    const PlannedStep step = plan_step(c.slots, limits);
    EXPECT_EQ(step.part_ms, c.part_ms);
    ASSERT_EQ(step.rows.size(), c.want.size());
    for (std::size_t i = 0; i < step.rows.size(); ++i) {
        EXPECT_EQ(step.rows[i].slot, c.want[i].slot);
        EXPECT_EQ(step.rows[i].begin, c.want[i].begin);
        EXPECT_EQ(step.rows[i].end, c.want[i].end);
        EXPECT_EQ(step.rows[i].samples, c.want[i].samples);
    }
}

TEST(PlanStepTest, FollowsTheRules) {
    const Case cases[] = {
        {"nothing to do", {}, 8, 64, kWhole, {}},
        {"one decode row", {slot(0, 5, 4)}, 8, 64, kWhole, {{SlotId(0), 4, 5, true}}},
        {"decode rows of all slots share the step",
         {slot(0, 5, 4), slot(2, 9, 8)},
         8,
         64,
         kWhole,
         {{SlotId(0), 4, 5, true}, {SlotId(2), 8, 9, true}}},
        {"a prompt that fits is read beside them",
         {slot(0, 8, 0), slot(2, 9, 8)},
         8,
         64,
         kWhole,
         {{SlotId(2), 8, 9, true}, {SlotId(0), 0, 8, true}}},
        {"what is left of it fits too", {slot(0, 100, 92)}, 8, 64, kWhole, {{SlotId(0), 92, 100, true}}},
        {"one that does not is a run in parts, without the others",
         {slot(0, 100, 0), slot(2, 9, 8)},
         8,
         64,
         kPart,
         {{SlotId(0), 0, 64, false}}},
        {"its last run samples", {slot(0, 100, 64)}, 8, 64, kPart, {{SlotId(0), 64, 100, true}}},
        {"a run that has begun goes on as it began",
         {begun(slot(0, 100, 0), 40, false), slot(2, 9, 8)},
         8,
         64,
         kPart,
         {{SlotId(0), 0, 40, false}}},
        {"even when its end may not be sampled any more",
         {begun(slot(0, 100, 64, false), 100, true)},
         8,
         64,
         kPart,
         {{SlotId(0), 64, 100, true}}},
        {"it waits for a prompt of higher priority",
         {begun(slot(0, 100, 0), 40, false), slot(1, 50, 0, true, false, 3)},
         8,
         64,
         kPart,
         {{SlotId(1), 0, 50, true}}},
        {"a chunk of many rows is read beside the others, though more are left",
         {slot(0, 400, 0), slot(2, 9, 8)},
         kWorthBeside,
         512,
         kWhole,
         {{SlotId(2), 8, 9, true}, {SlotId(0), 0, kWorthBeside, false}}},
        {"one prompt at a time, the oldest",
         {slot(1, 50, 0), slot(0, 60, 0), slot(2, 7, 6)},
         8,
         64,
         kPart,
         {{SlotId(0), 0, 60, true}}},
        {"a higher priority first",
         {slot(0, 60, 0), slot(1, 50, 0, true, false, 3)},
         8,
         64,
         kPart,
         {{SlotId(1), 0, 50, true}}},
        {"whose client is amid a reply before that",
         {slot(0, 60, 0), replying(slot(1, 50, 45)), slot(2, 7, 6)},
         8,
         64,
         kWhole,
         {{SlotId(2), 6, 7, true}, {SlotId(1), 45, 50, true}}},
        {"rows end where the state is to be kept",
         {stopping(slot(0, 100, 0), 30)},
         8,
         64,
         kPart,
         {{SlotId(0), 0, 30, false}}},
        {"there they may fit", {stopping(slot(0, 100, 24), 30)}, 8, 64, kWhole, {{SlotId(0), 24, 30, false}}},
        {"without permission nothing is decoded", {slot(0, 5, 4, false)}, 8, 64, kWhole, {}},
        {"without permission a prompt stops before its last token",
         {slot(0, 5, 0, false)},
         8,
         64,
         kWhole,
         {{SlotId(0), 0, 4, false}}},
        {"score goes through all tokens and never samples",
         {slot(0, 5, 0, true, true)},
         8,
         64,
         kWhole,
         {{SlotId(0), 0, 5, false}}},
        {"a score row alone is still read",
         {slot(0, 5, 4, true, true)},
         8,
         64,
         kWhole,
         {{SlotId(0), 4, 5, false}}},
        {"when it is the streams' turn nothing is read",
         {slot(0, 5, 0), begun(slot(3, 90, 0), 64, false), slot(1, 9, 8)},
         0,
         0,
         kWhole,
         {{SlotId(1), 8, 9, true}}},
    };
    for (const Case& c : cases)
        expect_planned(c, {{c.beside, c.beside}, {c.in_parts, c.in_parts}, c.beside > 0 ? kPart : 0});
}

TEST(PlanStepTest, AScoreJobHasLimitsOfItsOwn) {
    const Case job{"score job", {slot(0, 50, 0, true, true)}, 0, 0, kPart, {{SlotId(0), 0, 4, false}}};
    expect_planned(job, {{60, 2}, {64, 4}, kPart});
    const Case prompt{"prompt", {slot(0, 50, 0)}, 0, 0, kWhole, {{SlotId(0), 0, 50, true}}};
    expect_planned(prompt, {{60, 2}, {64, 4}, kPart});
}

}  // namespace
}  // namespace pantheon::actors

// The decisions of the memory ladder by table: from readings and time to level, rung and orders.
#include "actors/memory/ladder_policy.h"

#include <gtest/gtest.h>

#include "runtime/base/units.h"

namespace pantheon::actors {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kLimit = 10000;  // TIGHT below 1000, CRITICAL below 400 free

/// A ladder that is shown one reading after another, by default one a second.
class LadderPolicyTest : public ::testing::Test {
  protected:
    MemoryReadings reading(std::uint64_t free_bytes) const {
        MemoryReadings readings;
        readings.at = now;
        readings.rooms.push_back({"host", kLimit, free_bytes});
        return readings;
    }
    void show(MemoryReadings readings) {
        readings.at = now;
        state = next_state(state, readings, settings, packed_bytes);
        now += 1s;
    }
    void show_free(std::uint64_t free_bytes, int n_seconds = 1) {
        for (int i = 0; i < n_seconds; ++i) show(reading(free_bytes));
    }
    void show_pressure(double some, double full) {
        MemoryReadings readings = reading(kLimit);
        readings.pressures.push_back({"host", some, full});
        show(readings);
    }
    MemoryOrders orders() const { return orders_of(state, settings); }

    LadderSettings settings;
    LadderState state = LadderState::fresh();
    std::uint64_t packed_bytes = 0;
    std::chrono::steady_clock::time_point now{};
};

TEST_F(LadderPolicyTest, TheLevelFollowsWhicheverBoundIsShortest) {
    const struct {
        const char* name;
        std::uint64_t host_free, group_free;
        double some, full;
        bool is_signalled;
        MemoryLevel want;
    } kCases[] = {
        {"plenty", 9000, 9000, 0, 0, false, MemoryLevel::ok},
        {"the host at the threshold", 1000, 9000, 0, 0, false, MemoryLevel::ok},
        {"the host below it", 999, 9000, 0, 0, false, MemoryLevel::tight},
        {"the group below it", 9000, 999, 0, 0, false, MemoryLevel::tight},
        {"the group critical, the host tight", 999, 399, 0, 0, false, MemoryLevel::critical},
        {"nothing left", 0, 0, 0, 0, false, MemoryLevel::critical},
        {"some pressure", 9000, 9000, 20, 0, false, MemoryLevel::tight},
        {"some pressure, not enough", 9000, 9000, 19.9, 19.9, false, MemoryLevel::ok},
        {"full pressure", 9000, 9000, 90, 20, false, MemoryLevel::critical},
        {"signalled", 9000, 9000, 0, 0, true, MemoryLevel::tight},
    };
    for (const auto& c : kCases) {
        SCOPED_TRACE(c.name);
        state = LadderState::fresh();
        MemoryReadings readings = reading(c.host_free);
        readings.rooms.push_back({"group", kLimit, c.group_free});
        readings.pressures.push_back({"host", c.some, c.full});
        readings.is_signalled = c.is_signalled;
        show(readings);
        EXPECT_EQ(state.level, c.want);
        EXPECT_EQ(state.reason.empty(), c.want == MemoryLevel::ok);
    }
}

TEST_F(LadderPolicyTest, ReadingsThatSayNothingChangeNothing) {
    show(MemoryReadings());
    EXPECT_EQ(state.level, MemoryLevel::ok);
    EXPECT_EQ(orders(), MemoryOrders());
}

TEST_F(LadderPolicyTest, ThresholdsOfLargeHostsAreBounded) {
    EXPECT_EQ(tight_bytes(settings, 4 * kGiB), 4 * kGiB / 10);
    EXPECT_EQ(tight_bytes(settings, 1024 * kGiB), 2 * kGiB);
    EXPECT_EQ(critical_bytes(settings, 1024 * kGiB), kGiB / 2);
    settings.tight_free_bytes = 7;
    settings.critical_free_bytes = 3;
    EXPECT_EQ(tight_bytes(settings, kGiB), 7U);
    EXPECT_EQ(critical_bytes(settings, kGiB), 3U);
}

TEST_F(LadderPolicyTest, WhileItStaysTightOneRungFollowsAfterTheOther) {
    const int kWant[] = {1, 1, 2, 2, 3, 3, 4, 4, 4, 4};
    for (const int want : kWant) {
        show_free(900);
        EXPECT_EQ(state.rung, want);
    }
}

TEST_F(LadderPolicyTest, ARungThatHelpsIsTheLastOne) {
    show_free(900, 3);
    EXPECT_EQ(state.rung, 2);
    show_free(1200, 20);  // better, not clearly better
    EXPECT_EQ(state.level, MemoryLevel::tight);
    EXPECT_EQ(state.rung, 2);
}

TEST_F(LadderPolicyTest, CriticalPutsEveryRungInForceAtOnce) {
    show_free(9000);
    show_free(100);
    EXPECT_EQ(state.level, MemoryLevel::critical);
    EXPECT_EQ(state.rung, 5);
}

TEST_F(LadderPolicyTest, RungsAreUndoneInReverseOrderAndOneByOne) {
    show_free(100);
    std::vector<int> seen{state.rung};
    std::vector<MemoryLevel> levels{state.level};
    for (int i = 0; i < 60; ++i) {
        show_free(9000);
        if (seen.back() != state.rung) seen.push_back(state.rung);
        if (levels.back() != state.level) levels.push_back(state.level);
    }
    EXPECT_EQ(seen, (std::vector<int>{5, 4, 3, 2, 1, 0}));
    EXPECT_EQ(levels, (std::vector{MemoryLevel::critical, MemoryLevel::tight, MemoryLevel::ok}));
}

TEST_F(LadderPolicyTest, TheLevelFallsAfterTheDwellAndNotBefore) {
    show_free(900);
    show_free(9000, 10);  // calm since the first of them: nine seconds
    EXPECT_EQ(state.level, MemoryLevel::tight);
    show_free(9000);
    EXPECT_EQ(state.level, MemoryLevel::ok);
}

TEST_F(LadderPolicyTest, FlappingReadingsHoldTheLevel) {
    show_free(900);
    for (int i = 0; i < 100; ++i) {
        show_free(9000, 5);
        show_free(900);
        EXPECT_EQ(state.level, MemoryLevel::tight);
    }
    EXPECT_LE(state.rung, kTopRungWhenTight);
}

TEST_F(LadderPolicyTest, FlappingAroundAThresholdNeverUndoesARung) {
    int highest = 0;
    for (int i = 0; i < 100; ++i) {
        show_free(i % 2 ? 999 : 1001);
        EXPECT_GE(state.rung, highest);
        highest = state.rung;
    }
}

TEST_F(LadderPolicyTest, AShortageWhileRungsAreUndoneTakesThemUpAgain) {
    show_free(100);
    show_free(9000, 24);
    ASSERT_EQ(state.level, MemoryLevel::ok);
    ASSERT_GT(state.rung, 0);
    const int before = state.rung;
    show_free(900);
    EXPECT_EQ(state.level, MemoryLevel::tight);
    EXPECT_GE(state.rung, before);
    show_free(100);
    EXPECT_EQ(state.rung, 5);
}

TEST_F(LadderPolicyTest, PressureNeedsToHalveBeforeItCounts) {
    show_pressure(30, 0);
    for (int i = 0; i < 20; ++i) show_pressure(11, 0);
    EXPECT_EQ(state.level, MemoryLevel::tight);
    for (int i = 0; i < 11; ++i) show_pressure(9, 0);
    EXPECT_EQ(state.level, MemoryLevel::ok);
}

TEST_F(LadderPolicyTest, PackedWeightsComeBackOnlyWhenThereIsRoomForThem) {
    packed_bytes = 5000;
    show_free(900, 6);
    ASSERT_GE(state.rung, 3);
    EXPECT_FALSE(orders().keeps_packed);
    show_free(6000, 40);  // 6000 − 5000 would be TIGHT again
    EXPECT_EQ(state.rung, 0);
    EXPECT_FALSE(orders().keeps_packed);
    show_free(6500);
    EXPECT_TRUE(orders().keeps_packed);
}

TEST_F(LadderPolicyTest, AStateThatIsNotDerivedTakesWhatReadingsKeepUp) {
    const struct {
        std::uint64_t free_bytes;
        MemoryLevel level;
        int rung;
    } kCases[] = {{9000, MemoryLevel::ok, 0},
                  {1500, MemoryLevel::ok, 0},
                  {1499, MemoryLevel::tight, 4},
                  {599, MemoryLevel::critical, 5}};
    for (const auto& c : kCases) {
        SCOPED_TRACE(c.free_bytes);
        state = LadderState();
        show_free(c.free_bytes);
        EXPECT_EQ(state.level, c.level);
        EXPECT_EQ(state.rung, c.rung);
    }
}

TEST_F(LadderPolicyTest, SwitchedOffEverythingIsLiftedAtOnce) {
    show_free(100);
    settings.is_enabled = false;
    show_free(100);
    EXPECT_EQ(orders(), MemoryOrders());
}

TEST_F(LadderPolicyTest, EachRungAddsItsOrder) {
    const struct {
        MemoryLevel level;
        int rung;
        bool may_grow;
        double keep;
        std::optional<int> slots;
        bool is_squeezed, admits_as_q4_0, is_open;
    } kCases[] = {
        {MemoryLevel::ok, 0, true, 1, {}, false, false, true},
        {MemoryLevel::tight, 1, false, 0.5, {}, false, false, true},
        {MemoryLevel::tight, 2, false, 0.5, 8, false, false, true},
        {MemoryLevel::tight, 3, false, 0.5, 8, true, false, true},
        {MemoryLevel::tight, 4, false, 0.5, 8, true, true, true},
        {MemoryLevel::critical, 5, false, 0, 1, true, true, false},
        {MemoryLevel::ok, 2, false, 0.5, 8, false, false, true},
    };
    for (const auto& c : kCases) {
        SCOPED_TRACE(c.rung);
        state = LadderState::fresh();
        state.level = c.level;
        state.rung = c.rung;
        const MemoryOrders got = orders();
        EXPECT_EQ(got.cache_may_grow, c.may_grow);
        EXPECT_EQ(got.cache_keep, c.keep);
        EXPECT_EQ(got.slot_limit, c.slots);
        EXPECT_EQ(got.prefill_rows < 512, c.is_squeezed);
        EXPECT_EQ(got.admits_as_q4_0, c.admits_as_q4_0);
        EXPECT_EQ(got.is_admission_open, c.is_open);
        EXPECT_EQ(got.retry_after > 0ms, !c.is_open);
    }
}

}  // namespace
}  // namespace pantheon::actors

#include "actors/metrics/gap_meter.h"

#include <gtest/gtest.h>

namespace pantheon::actors {
namespace {

using namespace std::chrono_literals;

TEST(GapClockTest, CountsOnlyWhatTheDaemonIsToBlameFor) {
    const GapClock::Time start{};
    GapClock clock;
    EXPECT_FALSE(clock.pause(start + 1s));
    EXPECT_FALSE(clock.token(start)) << "nothing comes before the first";
    EXPECT_EQ(clock.pause(start + 20ms), 20ms);
    EXPECT_EQ(clock.token(start + 30ms), 30ms);
    clock.stop();
    EXPECT_FALSE(clock.token(start + 5s));
    clock.stop();
    clock.start(start + 6s);
    EXPECT_EQ(clock.token(start + 6s + 40ms), 40ms);
}

TEST(GapMeterTest, KnowsTheLongestEverAndOfTheLastMinute) {
    GapMeter meter;
    const GapClock::Time start{1000h};
    EXPECT_EQ(meter.since_start(), 0ms);
    EXPECT_EQ(meter.last_minute(start), 0ms);
    meter.add(300ms, start);
    meter.add(200ms, start + 1s);
    meter.add(100ms, start + 20s);
    EXPECT_EQ(meter.since_start(), 300ms);
    EXPECT_EQ(meter.last_minute(start + 54s), 300ms);
    EXPECT_EQ(meter.last_minute(start + 62s), 100ms);
    EXPECT_EQ(meter.last_minute(start + 200s), 0ms);
    // The same place in the ring, a round later.
    meter.add(50ms, start + 60s);
    EXPECT_EQ(meter.last_minute(start + 60s), 100ms);
    EXPECT_EQ(meter.since_start(), 300ms);
}

}  // namespace
}  // namespace pantheon::actors

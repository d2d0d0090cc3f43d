#include "kernels/exec/thread_team.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <thread>
#include <vector>

#include "kernels/exec/exec.h"

namespace pantheon::kernels {
namespace {

std::chrono::nanoseconds process_cpu_time() {
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}

TEST(ThreadTeamTest, EachThreadIsCalledOnceAndAllHaveReturned) {
    for (const int n : {1, 2, 3, 7}) {
        SCOPED_TRACE(n);
        ThreadTeam team(n);
        ASSERT_EQ(team.n_threads(), n);
        std::vector<int> calls(static_cast<std::size_t>(n),
                               0);  // not atomic: run() itself must order the accesses
        for (int round = 1; round <= 200; ++round) {
            team.run(
                [](void* context, int thread) {
                    ++(*static_cast<std::vector<int>*>(context))[static_cast<std::size_t>(thread)];
                },
                &calls);
            for (const int count : calls) ASSERT_EQ(count, round);
        }
    }
}

TEST(ThreadTeamTest, AMeterCountsBarriersAndTheTimeInside) {
    for (const int n : {1, 3}) {
        ThreadTeam team(n);
        TeamMeter meter;
        team.set_meter(&meter);
        for (int round = 0; round < 5; ++round)
            team.run([](void*, int) { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }, nullptr);
        EXPECT_EQ(meter.n_rounds, 5);
        EXPECT_GE(meter.round_seconds, 0.010);
        EXPECT_GE(meter.busy_seconds, 0.010 * n);
        EXPECT_LE(meter.busy_seconds, meter.round_seconds * n);
        team.set_meter(nullptr);
        team.run([](void*, int) {}, nullptr);
        EXPECT_EQ(meter.n_rounds, 5);
    }
}

TEST(ThreadTeamTest, RangesCoverEveryItemOnceWhateverTheGrain) {
    ThreadTeam team(3);
    const struct {
        std::int64_t n, grain;
    } kCases[] = {{0, 4}, {1, 1}, {1, 100}, {7, 3}, {1000, 1}, {1000, 64}, {1001, 1000}, {5, 0}, {-3, 1}};
    for (const auto& c : kCases) {
        SCOPED_TRACE(std::to_string(c.n) + " by " + std::to_string(c.grain));
        std::vector<int> hits(static_cast<std::size_t>(std::max<std::int64_t>(c.n, 0)), 0);
        team.parallel_for(c.n, c.grain, [&](std::int64_t begin, std::int64_t end) {
            ASSERT_LT(begin, end);
            for (std::int64_t i = begin; i < end; ++i) ++hits[static_cast<std::size_t>(i)];
        });
        for (const int hit : hits) ASSERT_EQ(hit, 1);
    }
}

TEST(ThreadTeamTest, ABodyMayAskWhichThreadRunsIt) {
    ThreadTeam team(3);
    Exec exec(team);
    exec.reserve_scratch(sizeof(std::int64_t));
    for (int thread = 0; thread < 3; ++thread) *exec.scratch<std::int64_t>(thread, 1) = 0;
    team.parallel_for(1000, 7, [&](int thread, std::int64_t begin, std::int64_t end) {
        *exec.scratch<std::int64_t>(thread, 1) += end - begin;  // nobody else's
    });
    std::int64_t sum = 0;
    for (int thread = 0; thread < 3; ++thread) sum += *exec.scratch<std::int64_t>(thread, 1);
    EXPECT_EQ(sum, 1000);
}

TEST(ThreadTeamTest, WakesFromParkingEveryTime) {
    ThreadTeam team(3);
    std::atomic<int> n_calls{0};
    for (int round = 1; round <= 30; ++round) {
        team.run([](void* context, int) { static_cast<std::atomic<int>*>(context)->fetch_add(1); }, &n_calls);
        ASSERT_EQ(n_calls.load(), 3 * round);
        // Around the time at which threads give up spinning, the most delicate moment.
        std::this_thread::sleep_for(std::chrono::microseconds(20 * (round % 8)));
    }
}

TEST(ThreadTeamTest, TheCallerWaitsForSlowThreads) {
    ThreadTeam team(2);
    int result = 0;
    team.run(
        [](void* context, int thread) {
            if (thread == 0) return;
            std::this_thread::sleep_for(std::chrono::milliseconds(5));  // long enough for the caller to park
            *static_cast<int*>(context) = 1;
        },
        &result);
    EXPECT_EQ(result, 1);
}

TEST(ThreadTeamTest, IdleThreadsUseNoCpu) {
    ThreadTeam team(4);
    team.run([](void*, int) {}, nullptr);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // spinning is over
    const auto before = process_cpu_time();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    EXPECT_LT(process_cpu_time() - before, std::chrono::milliseconds(20));
}

TEST(ThreadTeamTest, EndsAtOnceWhetherItWorkedOrNot) {
    for (int i = 0; i < 20; ++i) {
        ThreadTeam idle(3);
        ThreadTeam used(3);
        used.run([](void*, int) {}, nullptr);
    }
}

TEST(ExecTest, ScratchOfThreadsIsApartAndAligned) {
    ThreadTeam team(2);
    Exec exec(team);
    exec.reserve_scratch(100);
    exec.reserve_scratch(10);  // never shrinks
    auto* first = exec.scratch<unsigned char>(0, 100);
    auto* second = exec.scratch<unsigned char>(1, 100);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 64, 0u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(second) % 64, 0u);
    EXPECT_GE(second - first, 100);
}

}  // namespace
}  // namespace pantheon::kernels

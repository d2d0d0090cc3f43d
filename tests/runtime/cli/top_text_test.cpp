// What one look of `pantheon top` shows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/cli/top_text.h"

namespace pantheon::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

TopSample sample(int second, const std::string& changes = "{}") {
    Json status =
        Json::parse(R"({"version": "0.1.0", "state": "ready", "uptime_s": 3725, "model": {"name": "Tiny"},
        "engines": [{"name": "main", "state": "ready", "slots": {"configured": 16, "effective": 8, "busy": 3,
          "parked": 1}, "queue": {"waiting": 2, "limit": 64}, "last_step_age_ms": 7,
          "dies": [{"kv_used_bytes": 1048576, "kv_pool_bytes": 4194304}]}],
        "memory": {"level": "ok", "rung": 0}, "cache": {"bytes": 0, "limit_bytes": 1024, "hits": 4, "misses": 5},
        "tokens": {"prompt": 100, "cached": 10, "completion": 1000},
        "requests": [{"id": "mine", "phase": "decode", "age_ms": 61000}, {"id": 7, "phase": "queued", "age_ms": 0}]})");
    status.merge_patch(Json::parse(changes));
    return {std::chrono::steady_clock::time_point(std::chrono::seconds(second)), status};
}

TEST(TopTextTest, ShowsTheStateWithRatesSinceTheEarlierLook) {
    const auto before = sample(10, R"({"uptime_s": 3723, "tokens": {"prompt": 60, "completion": 875}})");
    EXPECT_EQ(top_text(sample(12), before, 200, 40),
              "pantheond 0.1.0 ready, up 1:02:05, Tiny\n"
              "tokens     completion 1000 (62.5/s)  prompt 100 (20.0/s)  cached 10\n"
              "memory     ok, rung 0  cache 0 B of 1.0 KiB, hits 4, misses 5\n"
              "main       ready     slots [###.....] 3/8, 1 parked  queue 2/64  KV 1.0 MiB of 4.0 MiB  step "
              "7 ms ago\n"
              "your requests: 2\n"
              "  mine                     decode     1:01\n"
              "  7                        queued     0:00\n");
}

TEST(TopTextTest, RatesNeedAnEarlierLookAtTheSameRun) {
    EXPECT_THAT(top_text(sample(12), std::nullopt, 200, 40), Not(HasSubstr("/s)")));
    EXPECT_THAT(top_text(sample(12), sample(10, R"({"uptime_s": 9000})"), 200, 40), Not(HasSubstr("/s)")));
    EXPECT_THAT(top_text(sample(12), sample(12), 200, 40), Not(HasSubstr("/s)")));
}

TEST(TopTextTest, FitsIntoTheTerminal) {
    const std::string text = top_text(sample(0, R"({"model": {"name": "Größe"}})"), std::nullopt, 39, 3);
    EXPECT_EQ(text.substr(0, text.find('\n')), "pantheond 0.1.0 ready, up 1:02:05, Größ");
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
}

TEST(TopTextTest, WhatTheDaemonDoesNotSayIsNoReasonToFail) {
    const TopSample empty{{}, Json::object()};
    EXPECT_THAT(top_text(empty, std::nullopt, 80, 24), HasSubstr("completion 0"));
    const TopSample odd{{}, Json::parse(R"({"engines": 3, "tokens": [], "requests": "x", "uptime_s": "y"})")};
    EXPECT_THAT(top_text(odd, odd, 80, 24), HasSubstr("up 0:00"));
}

}  // namespace
}  // namespace pantheon::cli

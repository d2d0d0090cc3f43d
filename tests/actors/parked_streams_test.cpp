// Streams that lose their place on the die and get it again, through the whole actor tree. The fake device
// computes from tokens alone, so a state that is not exactly the old one gives another reply.
#include <algorithm>
#include <random>

#include "tests/actors/daemon_fixture.h"

namespace pantheon::actors {
namespace {

using namespace std::chrono_literals;

class ParkedStreamsTest : public DaemonTest {
  protected:
    ParkedStreamsTest() {
        settings.engine.checkpoint = {1000, 100, kFakeBlockRows};
        settings.cache = {64, "", 1 << 20};
    }
    void limit(int n, const std::string& reason = "test") {
        caf::anon_send(wiring->scheduler, SetSlotLimit{n, reason});
    }
    std::vector<TokenId> prompt(std::uint64_t r) const { return long_talker(static_cast<TokenId>('a' + r)); }
    bool was_parked(const RequestId& id) const {
        const auto notes = events<DoneEvent>("c", id).at(0).notes;
        return std::find(notes.begin(), notes.end(), "parked") != notes.end();
    }
    void expect_whole(const RequestId& id, const std::vector<TokenId>& asked) const {
        EXPECT_EQ(streamed("c", id), expected(asked));
        ASSERT_EQ(events<DoneEvent>("c", id).size(), 1U);
        const auto tokens = events<TokenEvent>("c", id);
        for (std::size_t i = 0; i < tokens.size(); ++i) {
            if (tokens[i].token) {
                EXPECT_EQ(tokens[i].i, static_cast<std::int64_t>(i));
            }
        }
    }
    std::size_t n_rows() const {
        std::size_t n = 0;
        for (const std::size_t rows : control->rows_per_step) n += rows;
        return n;
    }
};

TEST_F(ParkedStreamsTest, AHigherPriorityParksALowerStreamWhichThenGoesOnExactly) {
    settings.engine.n_slots = 1;
    start();
    const std::size_t n_before = n_rows();
    deliver("c", RequestId("low"), greedy(prompt(0)));
    run_until([&] { return streamed("c", RequestId("low")).size() == 5; });
    GenerateRequest urgent = greedy(prompt(1));
    urgent.priority = 5;
    deliver("c", RequestId("urgent"), urgent);
    run_until([&] { return !streamed("c", RequestId("urgent")).empty(); });
    EXPECT_LT(streamed("c", RequestId("low")).size(), 10U);
    run();
    EXPECT_EQ(snapshot()->n_parked, 0);
    expect_whole(RequestId("low"), prompt(0));
    expect_whole(RequestId("urgent"), prompt(1));
    EXPECT_TRUE(was_parked(RequestId("low")));
    EXPECT_FALSE(was_parked(RequestId("urgent")));
    EXPECT_EQ(n_rows() - n_before, 2 * (3 + 39U)) << "not a row is evaluated twice";
}

TEST_F(ParkedStreamsTest, ALowerLimitParksAndDropsNoneAndIsUndone) {
    start();
    for (std::uint64_t r = 0; r < 4; ++r) deliver("c", RequestId(r), greedy(prompt(r)));
    run_until([&] { return streamed("c", RequestId(std::uint64_t{3})).size() == 3; });
    limit(1, "memory");
    run_until([&] { return streamed("c", RequestId(std::uint64_t{0})).size() > 20; });
    EXPECT_LT(streamed("c", RequestId(std::uint64_t{1})).size(), 8U);
    limit(4, "configured");
    run();
    for (std::uint64_t r = 0; r < 4; ++r) expect_whole(RequestId(r), prompt(r));
    EXPECT_FALSE(was_parked(RequestId(std::uint64_t{0})));
    for (std::uint64_t r = 1; r < 4; ++r) EXPECT_TRUE(was_parked(RequestId(r)));
}

TEST_F(ParkedStreamsTest, StatusShowsTheLimitItsReasonAndWhoIsParked) {
    start();
    for (std::uint64_t r = 0; r < 3; ++r) {
        GenerateRequest request = greedy(prompt(r));
        request.credit = 2;
        deliver("c", RequestId(r), request);
    }
    run();
    limit(1, "memory TIGHT");
    run();
    deliver("c", RequestId("s"), StatusRequest{});
    run();
    const Json slots = events<ResultEvent>("c", RequestId("s"))[0].value["engines"][0]["slots"];
    EXPECT_EQ(slots["configured"], 4);
    EXPECT_EQ(slots["effective"], 1);
    EXPECT_EQ(slots["reason"], "memory TIGHT");
    EXPECT_EQ(slots["busy"], 1);
    EXPECT_EQ(slots["parked"], 2);
}

TEST_F(ParkedStreamsTest, AStreamWithoutCreditIsParkedAfterASecondAndGoesOnWithMore) {
    settings.engine.n_slots = 1;
    start();
    GenerateRequest held = greedy(prompt(0));
    held.credit = 3;
    deliver("c", RequestId("held"), held);
    run();
    deliver("c", RequestId("next"), greedy(prompt(1)));
    for (int i = 0; i < 3; ++i) pass(250ms);
    EXPECT_TRUE(streamed("c", RequestId("next")).empty());
    for (int i = 0; i < 2; ++i) pass(250ms);
    expect_whole(RequestId("next"), prompt(1));
    EXPECT_EQ(snapshot()->n_parked, 1);
    for (int i = 0; i < 4; ++i) pass(250ms);
    const auto progress = events<ProgressEvent>("c", RequestId("held"));
    ASSERT_FALSE(progress.empty());
    EXPECT_EQ(progress.back().phase, "parked");
    deliver("c", RequestId("g"), CreditRequest{RequestId("held"), 100});
    run();
    expect_whole(RequestId("held"), prompt(0));
    EXPECT_EQ(control->n_restored, 1);
}

TEST_F(ParkedStreamsTest, AnUnreadStreamIsParkedThenGoesOnWhenItIsRead) {
    start();
    deliver("c", RequestId("r"), greedy(prompt(0)));
    run_until([&] { return streamed("c", RequestId("r")).size() == 2; });
    port->deliver(ClientBacklog{"c", true});
    run();
    for (int i = 0; i < 5; ++i) pass(250ms);
    EXPECT_EQ(snapshot()->n_parked, 1);
    EXPECT_EQ(snapshot()->n_busy, 0);
    port->deliver(ClientBacklog{"c", false});
    run();
    expect_whole(RequestId("r"), prompt(0));
    EXPECT_TRUE(was_parked(RequestId("r")));
}

TEST_F(ParkedStreamsTest, ACancelReachesAParkedStreamAndFreesItsState) {
    settings.cache.every = 0;
    start();
    GenerateRequest held = greedy(prompt(0));
    held.credit = 3;
    held.cache = CacheMode::off;
    deliver("c", RequestId("r"), held);
    run();
    for (int i = 0; i < 5; ++i) pass(250ms);
    EXPECT_EQ(control->n_held(), 1U);
    EXPECT_GT(snapshot()->cache_bytes, 0U) << "its state counts";
    deliver("c", RequestId("x"), CancelRequest{RequestId("r")});
    run();
    EXPECT_EQ(events<DoneEvent>("c", RequestId("r")).at(0).finish, "cancelled");
    EXPECT_EQ(control->n_held(), 0U);
    EXPECT_EQ(snapshot()->n_parked, 0);
    EXPECT_EQ(snapshot()->cache_bytes, 0U);
}

TEST_F(ParkedStreamsTest, WithoutRoomForItsStateAParkedStreamIsReadAgain) {
    settings.cache.limit_bytes = 0;
    settings.engine.n_slots = 1;
    start();
    deliver("c", RequestId("low"), greedy(prompt(0)));
    run_until([&] { return streamed("c", RequestId("low")).size() == 5; });
    GenerateRequest urgent = greedy(prompt(1));
    urgent.priority = 1;
    deliver("c", RequestId("urgent"), urgent);
    run();
    expect_whole(RequestId("low"), prompt(0));
    expect_whole(RequestId("urgent"), prompt(1));
    EXPECT_EQ(control->n_restored, 0);
}

TEST_F(ParkedStreamsTest, AStateThatCannotBeKeptOrRestoredOnlyCostsTime) {
    for (const bool fails_at_keep : {true, false}) {
        control->fail_snapshot = fails_at_keep;
        control->fail_restore = !fails_at_keep;
        settings.engine.n_slots = 1;
        if (!root) start();
        const RequestId low(fails_at_keep ? "low 1" : "low 2"), high(fails_at_keep ? "high 1" : "high 2");
        deliver("c", low, greedy(prompt(0)));
        run_until([&] { return streamed("c", low).size() == 5; });
        GenerateRequest urgent = greedy(prompt(1));
        urgent.priority = 1;
        deliver("c", high, urgent);
        run();
        expect_whole(low, prompt(0));
        expect_whole(high, prompt(1));
    }
}

TEST_F(ParkedStreamsTest, AParkedStreamSurvivesADeadDieAndADeadScheduler) {
    start();
    GenerateRequest held = greedy(prompt(0));
    held.credit = 3;
    deliver("c", RequestId("r"), held);
    run();
    for (int i = 0; i < 5; ++i) pass(250ms);
    ASSERT_EQ(snapshot()->n_parked, 1);
    kill(wiring->die);
    run();
    kill(wiring->scheduler);
    run();
    pass(1s);
    deliver("c", RequestId("g"), CreditRequest{RequestId("r"), 100});
    run();
    expect_whole(RequestId("r"), prompt(0));
}

TEST_F(ParkedStreamsTest, AFullKvPoolParksTheNewestAndLosesNothing) {
    settings.engine.kv_pool_bytes = 600;  // six blocks of 16 rows
    start();
    for (std::uint64_t r = 0; r < 4; ++r) deliver("c", RequestId(r), greedy(prompt(r)));
    run();
    for (std::uint64_t r = 0; r < 4; ++r) expect_whole(RequestId(r), prompt(r));
    EXPECT_FALSE(was_parked(RequestId(std::uint64_t{0})));
    EXPECT_TRUE(was_parked(RequestId(std::uint64_t{3})));
}

TEST_F(ParkedStreamsTest, AScoreJobCanBeParkedToo) {
    settings.engine.n_slots = 1;
    start();
    deliver("c", RequestId("s"), ScoreRequest{std::vector<TokenId>(200, 's'), 0});
    const std::size_t n_steps = control->rows_per_step.size();
    run_until([&] { return control->rows_per_step.size() == n_steps + 1; });
    GenerateRequest urgent = greedy(prompt(1));
    urgent.priority = 1;
    deliver("c", RequestId("u"), urgent);
    run();
    expect_whole(RequestId("u"), prompt(1));
    EXPECT_EQ(events<ResultEvent>("c", RequestId("s")).at(0).value["logprobs"].size(), 200U);
}

TEST_F(ParkedStreamsTest, WhateverComesInWhateverOrderEveryReplyIsTheOneItWouldBeAlone) {
    settings.limits.queue = 100;
    settings.engine.kv_pool_bytes = 900;
    start();
    std::mt19937 random(7);
    std::vector<std::pair<RequestId, std::vector<TokenId>>> asked;
    std::vector<RequestId> cancelled;
    std::size_t n_kills = 0;
    for (int round = 0; round < 150; ++round) {
        const auto choice = random() % 10;
        if (choice < 6) {
            const RequestId id("x" + std::to_string(round));
            const auto tokens = prompt(random() % 20);
            GenerateRequest request = greedy(tokens);
            request.priority = static_cast<int>(random() % 5) - 2;
            request.cache = random() % 2 == 0 ? CacheMode::private_ : CacheMode::off;
            deliver("c", id, request);
            asked.emplace_back(id, tokens);
        } else if (choice == 6 && !asked.empty()) {
            cancelled.push_back(asked[random() % asked.size()].first);
            deliver("c", RequestId("cancel"), CancelRequest{cancelled.back()});
        } else if (choice == 7) {
            limit(1 + static_cast<int>(random() % 4));
        } else if (choice == 8) {
            port->deliver(ClientBacklog{"c", random() % 2 == 0});
        } else if (n_kills < RestartBudget::kMost && random() % 4 == 0) {
            kill(wiring->die);
            ++n_kills;
        }
        for (auto n = random() % 200; n > 0 && scheduler.try_run_once(); --n) continue;
    }
    port->deliver(ClientBacklog{"c", false});
    limit(4);
    run();
    for (const auto& [id, tokens] : asked) {
        SCOPED_TRACE(std::get<std::string>(id));
        if (std::find(cancelled.begin(), cancelled.end(), id) == cancelled.end()) {
            expect_whole(id, tokens);
        } else {
            EXPECT_EQ(events<DoneEvent>("c", id).size(), 1U);
        }
    }
    EXPECT_EQ(snapshot()->n_busy + snapshot()->n_parked, 0);
    EXPECT_LE(control->n_held() * 1000, snapshot()->cache_bytes);
}

}  // namespace
}  // namespace pantheon::actors

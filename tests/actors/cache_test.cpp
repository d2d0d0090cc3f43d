// The prefix cache through the whole actor tree: what is evaluated, what clients are told, what is left when
// parts fail. The fake device computes from tokens alone, so a wrong state gives a wrong reply.
#include <numeric>
#include <random>

#include "tests/actors/daemon_fixture.h"

namespace pantheon::actors {
namespace {

using namespace std::chrono_literals;

class CacheTest : public DaemonTest {
  protected:
    CacheTest() {
        settings.engine.checkpoint = {1000, 100, kFakeBlockRows};
        settings.cache.every = 64;
        settings.cache.limit_bytes = 1 << 20;
    }

    static GenerateRequest greedy(std::vector<TokenId> prompt, std::int64_t max_tokens = 4) {
        GenerateRequest request = DaemonTest::greedy(std::move(prompt), max_tokens);
        request.cache = CacheMode::private_;
        return request;
    }

    /// Runs the request to its end; how many tokens of its prompt came from the cache. Checks the reply and
    /// that exactly the others were evaluated.
    std::int64_t cached(GenerateRequest request, std::uint32_t uid = 1000) {
        const std::vector<TokenId> prompt = std::get<std::vector<TokenId>>(request.input);
        const std::int64_t max_tokens = *request.max_tokens;
        const RequestId id(n_requests_++);
        control->rows_per_step.clear();
        deliver("c", id, std::move(request), uid);
        run();
        const auto done = events<DoneEvent>("c", id);
        EXPECT_EQ(done.size(), 1U);
        if (done.size() != 1) return -1;
        EXPECT_EQ(streamed("c", id), expected(prompt, max_tokens));
        const Usage& usage = done[0].usage;
        const auto n_rows =
            std::accumulate(control->rows_per_step.begin(), control->rows_per_step.end(), std::size_t{0});
        // The last token drawn is not fed.
        EXPECT_EQ(static_cast<std::int64_t>(n_rows),
                  usage.prompt_tokens - usage.cached_tokens + usage.completion_tokens - 1);
        EXPECT_LE(usage.cached_tokens, usage.prompt_tokens - 1);
        return usage.cached_tokens;
    }

    Json sessions(CacheMode mode = CacheMode::private_, std::uint32_t uid = 1000) {
        const RequestId id(n_requests_++);
        deliver("c", id, SessionRequest{"sessions", std::nullopt, mode}, uid);
        run();
        return events<ResultEvent>("c", id).at(0).value["sessions"];
    }

    static std::vector<TokenId> text(std::size_t n, TokenId first = 'a') {
        std::vector<TokenId> tokens(n);
        for (std::size_t i = 0; i < n; ++i) tokens[i] = 'a' + static_cast<TokenId>((i * 7 + first) % 26);
        tokens[0] = first;
        return tokens;
    }
    static std::vector<TokenId> joined(std::vector<TokenId> a, const std::vector<TokenId>& b) {
        a.insert(a.end(), b.begin(), b.end());
        return a;
    }

    std::uint64_t n_requests_ = 0;
};

TEST_F(CacheTest, AnArbitrarySharedPrefixHitsFromTheThirdRequestOn) {
    start();
    const auto shared = text(50);
    EXPECT_EQ(cached(greedy(joined(shared, {'1', '2'}))), 0);
    EXPECT_EQ(cached(greedy(joined(shared, {'3', '4'}))), 0);
    EXPECT_EQ(cached(greedy(joined(shared, {'5', '6'}))), 50);
    EXPECT_EQ(cached(greedy(joined(shared, {'7', '8'}))), 50);
}

TEST_F(CacheTest, APromptThatGoesOnFromAnEarlierOneHitsAtOnce) {
    start();
    const auto prompt = text(40);
    EXPECT_EQ(cached(greedy(prompt, 1)), 0);
    EXPECT_EQ(cached(greedy(joined(prompt, {'1', '2', '3'}))), 40);
}

TEST_F(CacheTest, AReplyThatIsSentBackIsNotEvaluatedAgain) {
    start();
    const auto prompt = text(40);
    EXPECT_EQ(cached(greedy(prompt, 10)), 0);
    const auto reply = fake_reply(prompt, 10, end);
    ASSERT_EQ(reply.size(), 10U);
    // All of the reply but the last token, which was drawn and never fed.
    EXPECT_EQ(cached(greedy(joined(joined(prompt, reply), {'?'}))), 49);
}

TEST_F(CacheTest, AMessagePrefixHitsFromTheSecondRequestOn) {
    start();
    const TokenId message = settings.text.tokenizer->find("<|im_start|>");
    ASSERT_GE(message, 0);
    const auto opening = joined({message}, text(30));
    const auto first = joined(joined(opening, {message, 'u', '1'}), {message, 'a'});
    const auto second = joined(joined(opening, {message, 'u', '2'}), {message, 'a'});
    EXPECT_EQ(cached(greedy(first)), 0);
    EXPECT_EQ(cached(greedy(second)), 31);
    EXPECT_EQ(cached(greedy(first)), 34) << "before the assistant's header";
}

TEST_F(CacheTest, ARepeatedPromptEvaluatesOneToken) {
    start();
    const auto prompt = text(300);
    EXPECT_EQ(cached(greedy(prompt)), 0);
    EXPECT_EQ(cached(greedy(prompt)), 299);
    const auto brief = text(40, 'z');
    EXPECT_EQ(cached(greedy(brief)), 0);
    EXPECT_EQ(cached(greedy(brief)), 0);
    EXPECT_EQ(cached(greedy(brief)), 39);
    EXPECT_EQ(cached(greedy({'1'})), 0);
    EXPECT_EQ(cached(greedy({'1'})), 0) << "one token is always evaluated";
}

TEST_F(CacheTest, AnEditCostsTheDistanceToTheCheckpointBeforeIt) {
    start();
    auto prompt = text(400);
    EXPECT_EQ(cached(greedy(prompt)), 0);
    prompt[200] = '!';
    EXPECT_EQ(cached(greedy(prompt)), 192);  // sessions.every = 64
}

TEST_F(CacheTest, CheckpointsAreTakenWhileReplyingToo) {
    start();
    auto prompt = long_talker('a', 60);
    prompt.resize(3);
    settings.limits.max_tokens = 64;
    EXPECT_EQ(cached(greedy(prompt, 60)), 0);
    EXPECT_GE(snapshot()->cache_bytes, 2000U);
}

TEST_F(CacheTest, OneClientsPromptsDoNotServeAnother) {
    start();
    const auto prompt = text(300);
    EXPECT_EQ(cached(greedy(prompt), 1000), 0);
    EXPECT_EQ(cached(greedy(prompt), 2000), 0);
    EXPECT_EQ(cached(greedy(prompt), 1000), 299);
}

TEST_F(CacheTest, WhatIsDeclaredSharedServesEverybody) {
    start();
    auto request = greedy(text(300));
    request.cache = CacheMode::shared;
    EXPECT_EQ(cached(request, 1000), 0);
    EXPECT_EQ(cached(request, 2000), 299);
    EXPECT_EQ(cached(greedy(text(300)), 3000), 299);
}

TEST_F(CacheTest, OffNeitherReadsNorFeedsTheCache) {
    start();
    auto off = greedy(text(300));
    off.cache = CacheMode::off;
    EXPECT_EQ(cached(off), 0);
    EXPECT_EQ(snapshot()->cache_bytes, 0U);
    EXPECT_EQ(cached(greedy(text(300))), 0);
    EXPECT_EQ(cached(off), 0);
    EXPECT_EQ(snapshot()->cache_misses, 1U);
}

TEST_F(CacheTest, WithoutBytesNothingIsKept) {
    settings.cache.limit_bytes = 0;
    start();
    EXPECT_EQ(cached(greedy(text(300))), 0);
    EXPECT_EQ(cached(greedy(text(300))), 0);
    EXPECT_EQ(control->n_held(), 0U);
}

TEST_F(CacheTest, ClientsThatStartTogetherShareWhatTheFirstHasRead) {
    start();
    const TokenId message = settings.text.tokenizer->find("<|im_start|>");
    const auto opening = joined({message}, text(200));
    for (std::uint64_t r = 0; r < 4; ++r)
        deliver("c", RequestId("r" + std::to_string(r)),
                greedy(joined(opening, {message, static_cast<TokenId>('1' + r)})));
    run();
    for (std::uint64_t r = 0; r < 4; ++r) {
        const RequestId id("r" + std::to_string(r));
        EXPECT_EQ(streamed("c", id), expected(joined(opening, {message, static_cast<TokenId>('1' + r)}), 4));
        // The second leaves the first one token after the system message, which the others then use.
        const std::int64_t want[] = {0, 201, 202, 202};
        EXPECT_EQ(events<DoneEvent>("c", id)[0].usage.cached_tokens, want[r]) << r;
    }
}

TEST_F(CacheTest, StatusCountsBytesHitsAndMisses) {
    start();
    cached(greedy(text(300)));
    cached(greedy(text(300)));
    const SnapshotPtr s = snapshot();
    EXPECT_EQ(s->cache_hits, 1U);
    EXPECT_EQ(s->cache_misses, 1U);
    EXPECT_GT(s->cache_bytes, 0U);
    EXPECT_EQ(s->cache_limit_bytes, 1U << 20);
    EXPECT_EQ(s->cached_tokens, 299U);
}

TEST_F(CacheTest, TheBudgetHoldsAndTheDieKeepsExactlyWhatIsCounted) {
    settings.cache.limit_bytes = 20000;
    settings.limits.queue = 64;
    start();
    std::mt19937 random(3);
    for (int round = 0; round < 60; ++round) {
        auto prompt = text(20 + random() % 200, static_cast<TokenId>('a' + random() % 3));
        prompt.back() = '0' + static_cast<TokenId>(random() % 10);
        deliver("c", RequestId("x" + std::to_string(round)), greedy(prompt));
        if (random() % 4 == 0)
            deliver("c", RequestId("cancel"), CancelRequest{RequestId("x" + std::to_string(round))});
        if (random() % 3 == 0) run();
        EXPECT_LE(snapshot()->cache_bytes, 20000U);
    }
    run();
    EXPECT_LE(control->n_held() * 1000, snapshot()->cache_bytes);
    EXPECT_GT(control->n_held(), 3U);
    // Without the cache nothing is left behind.
    auto off = std::make_shared<DaemonSettings>(settings);
    off->cache.limit_bytes = 0;
    caf::anon_send(wiring->scheduler, SettingsPtr(off));
    run();
    EXPECT_EQ(snapshot()->cache_bytes, 0U);
    EXPECT_EQ(control->n_held(), 0U);
}

TEST_F(CacheTest, ASessionKeepsTheFinalStateUntilItIsDropped) {
    start();
    auto request = greedy(text(40), 10);
    request.session = "talk";
    cached(request);
    ASSERT_EQ(sessions().size(), 1U);
    EXPECT_EQ(sessions()[0]["session"], "talk");
    EXPECT_EQ(sessions()[0]["tokens"], 49);
    EXPECT_TRUE(sessions(CacheMode::private_, 2000).empty());
    deliver("c", RequestId("theirs"), SessionRequest{"session.drop", "talk", CacheMode::private_}, 2000);
    deliver("c", RequestId("drop"), SessionRequest{"session.drop", "talk", CacheMode::private_});
    deliver("c", RequestId("again"), SessionRequest{"session.drop", "talk", CacheMode::private_});
    run();
    EXPECT_EQ(events<ErrorEvent>("c", RequestId("theirs")).at(0).error.code(), Code::not_found);
    EXPECT_EQ(events<ResultEvent>("c", RequestId("drop")).at(0).value["dropped"], true);
    EXPECT_EQ(events<ErrorEvent>("c", RequestId("again")).at(0).error.code(), Code::not_found);
    EXPECT_TRUE(sessions().empty());
}

TEST_F(CacheTest, AStopStringsReplyIsKeptToo) {
    start();
    const auto prompt = long_talker('a');
    auto request = greedy(prompt, 40);
    request.stop = {std::string(1, static_cast<char>(expected(prompt)[5]))};
    request.session = "stopped";
    deliver("c", RequestId("r"), request);
    run();
    EXPECT_EQ(events<DoneEvent>("c", RequestId("r")).at(0).finish, "stop");
    EXPECT_EQ(sessions().size(), 1U);
}

TEST_F(CacheTest, ACheckpointThatCannotBeRestoredOnlyCostsTime) {
    start();
    cached(greedy(text(300)));
    control->fail_restore = true;
    EXPECT_EQ(cached(greedy(text(300))), 0);
    control->fail_restore = false;
    EXPECT_EQ(snapshot()->cached_tokens, 0U);
}

TEST_F(CacheTest, AStateThatCannotBeKeptOnlyIsNotThere) {
    control->fail_snapshot = true;
    start();
    EXPECT_EQ(cached(greedy(text(300))), 0);
    control->fail_snapshot = false;
    EXPECT_EQ(cached(greedy(text(300))), 0);
    EXPECT_EQ(cached(greedy(text(300))), 299);
}

TEST_F(CacheTest, AKilledDieTakesTheCacheWithItAndNoRequest) {
    start();
    const auto prompt = text(300);
    cached(greedy(prompt));
    deliver("c", RequestId("r"), greedy(prompt, 40));
    run_until([&] { return streamed("c", RequestId("r")).size() == 2; });
    EXPECT_EQ(control->n_restored, 1);
    kill(wiring->die);
    run();
    EXPECT_EQ(streamed("c", RequestId("r")), expected(prompt, 40));
    EXPECT_EQ(events<DoneEvent>("c", RequestId("r")).at(0).usage.cached_tokens, 299);
    EXPECT_EQ(cached(greedy(prompt)), 299) << "what was evaluated again is kept again";
}

TEST_F(CacheTest, AKilledSchedulerLeavesNothingBehindOnTheDie) {
    start();
    const auto prompt = text(300);
    cached(greedy(prompt));
    deliver("c", RequestId("r"), greedy(prompt, 40));
    run_until([&] { return streamed("c", RequestId("r")).size() == 2; });
    kill(wiring->scheduler);
    run();
    pass(1s);
    EXPECT_EQ(streamed("c", RequestId("r")), expected(prompt, 40));
    EXPECT_EQ(events<DoneEvent>("c", RequestId("r")).at(0).usage.cached_tokens, 299);
    EXPECT_LE(control->n_held() * 1000, snapshot()->cache_bytes);
}

TEST_F(CacheTest, ACancelledRequestLeavesOnlyWhatTheCacheCounts) {
    start();
    deliver("c", RequestId("r"), greedy(text(400), 40));
    run_until([&] { return control->rows_per_step.size() > 4; });
    deliver("c", RequestId("x"), CancelRequest{RequestId("r")});
    run();
    EXPECT_EQ(events<DoneEvent>("c", RequestId("r")).at(0).finish, "cancelled");
    EXPECT_LE(control->n_held() * 1000, snapshot()->cache_bytes);
    // What was read before is not read again.
    EXPECT_GE(cached(greedy(text(400))), 0);
}

}  // namespace
}  // namespace pantheon::actors

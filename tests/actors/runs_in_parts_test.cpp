// Prompts that are read in parts, through the whole actor tree: what happens between two of them. The fake
// device says how many parts a run takes, and computes from tokens alone, so that a wrong state gives a wrong
// reply.
#include <algorithm>
#include <numeric>

#include "tests/actors/daemon_fixture.h"

namespace pantheon::actors {
namespace {

class RunsInPartsTest : public DaemonTest {
  protected:
    RunsInPartsTest() {
        settings.engine.checkpoint = {1000, 100, kFakeBlockRows};
        settings.cache = {64, "", 1 << 20};
        control->n_parts = 5;
    }
    /// Calls `act` after the first part of the next run that is not done with it.
    void after_first_part(std::function<void()> act) {
        control->during_each_part = [this, act = std::move(act)](const model::StepRun&) {
            control->during_each_part = nullptr;
            act();
            scheduler.run();  // what needs no die
        };
    }
    std::vector<TokenId> prompt(std::size_t n, TokenId first) const {
        for (TokenId second = 'a';; ++second) {
            std::vector<TokenId> tokens(n, first);
            tokens[1] = second;
            if (expected(tokens).size() == 40) return tokens;
        }
    }
    void expect_whole(const RequestId& id, const std::vector<TokenId>& asked) const {
        EXPECT_EQ(streamed("c", id), expected(asked));
        ASSERT_EQ(events<DoneEvent>("c", id).size(), 1U);
        EXPECT_EQ(events<DoneEvent>("c", id)[0].finish, "length");
    }
    std::size_t n_rows() const {
        return std::accumulate(control->rows_per_step.begin(), control->rows_per_step.end(), std::size_t{0});
    }

    const RequestId r{"r"}, s{"s"};
};

TEST_F(RunsInPartsTest, StreamsDecodeBetweenTheParts) {
    start();
    deliver("c", s, greedy(long_talker('a')));
    run_until([&] { return streamed("c", s).size() == 3; });
    std::vector<std::size_t> n_streamed;
    control->during_each_part = [&](const model::StepRun&) { n_streamed.push_back(streamed("c", s).size()); };
    deliver("c", r, greedy(prompt(60, 'b')));
    run();
    control->during_each_part = nullptr;
    ASSERT_EQ(n_streamed.size(), 4U);
    EXPECT_GT(n_streamed[1], n_streamed[0]);
    expect_whole(s, long_talker('a'));
    expect_whole(r, prompt(60, 'b'));
}

TEST_F(RunsInPartsTest, WhoBeginsToDecodeNeedNotWaitForTheRest) {
    start();
    std::vector<std::size_t> n_streamed;
    control->during_each_part = [&](const model::StepRun&) {
        if (n_streamed.empty()) {
            deliver("c", s, greedy({'h'}, 1));  // a prompt of one token has nothing to read
            scheduler.run();
        }
        n_streamed.push_back(streamed("c", s).size());
    };
    deliver("c", r, greedy(prompt(60, 'b')));
    run();
    control->during_each_part = nullptr;
    EXPECT_EQ(n_streamed.back(), 1U);
}

TEST_F(RunsInPartsTest, ACancelBetweenTwoPartsFreesThePlaceWithoutTheRest) {
    settings.engine.n_slots = 1;
    start();
    after_first_part([&] { deliver("c", RequestId("x"), CancelRequest{r}); });
    deliver("c", r, greedy(prompt(60, 'a')));
    run();
    EXPECT_EQ(control->n_begun_parts, 1);
    ASSERT_EQ(events<DoneEvent>("c", r).size(), 1U);
    EXPECT_EQ(events<DoneEvent>("c", r)[0].finish, "cancelled");
    deliver("c", s, greedy(prompt(60, 'b')));
    run();
    expect_whole(s, prompt(60, 'b'));
}

TEST_F(RunsInPartsTest, AStreamThatIsToBeParkedEndsItsRunFirst) {
    settings.engine.n_slots = 1;
    start();
    const std::size_t n_before = n_rows();
    after_first_part([&] {
        GenerateRequest urgent = greedy(prompt(50, 'b'));
        urgent.priority = 5;
        deliver("c", s, urgent);
    });
    deliver("c", r, greedy(prompt(60, 'a')));
    run_until([&] { return !streamed("c", s).empty(); });
    EXPECT_EQ(streamed("c", r).size(), 1U) << "the run drew its token, then it was parked";
    run();
    expect_whole(r, prompt(60, 'a'));
    expect_whole(s, prompt(50, 'b'));
    EXPECT_EQ(n_rows() - n_before, 60 + 50 + 2 * 39U) << "not a row is evaluated twice";
}

TEST_F(RunsInPartsTest, APromptOfHigherPriorityIsReadBetweenTheParts) {
    start();
    after_first_part([&] {
        GenerateRequest urgent = greedy(prompt(50, 'b'), 1);
        urgent.priority = 5;
        deliver("c", s, urgent);
    });
    deliver("c", r, greedy(prompt(60, 'a')));
    run_until([&] { return !streamed("c", s).empty(); });
    EXPECT_TRUE(streamed("c", r).empty());
    run();
    expect_whole(r, prompt(60, 'a'));
}

TEST_F(RunsInPartsTest, ARunIsReadAgainWhenItsDieFails) {
    start();
    deliver("c", r, greedy(prompt(60, 'a')));
    run_until([&] { return control->n_begun_parts == 2; });
    kill(wiring->die);
    run();
    expect_whole(r, prompt(60, 'a'));
}

TEST_F(RunsInPartsTest, WhoNeedsRoomAtOnceDoesNotWaitForARun) {
    start();
    deliver("c", s, greedy(long_talker('a')));
    run_until([&] { return streamed("c", s).size() == 3; });
    after_first_part([&] { control->kv_pool_bytes = 1; });  // nothing more fits
    deliver("c", r, greedy(prompt(60, 'b')));
    run_until([&] { return control->n_exhausted > 0; });
    run_until([&] { return snapshot()->n_parked > 0; });
    control->kv_pool_bytes = 0;
    pass(std::chrono::seconds(1));
    for (int i = 0; i < 20; ++i) pass(std::chrono::milliseconds(250));
    expect_whole(s, long_talker('a'));
    expect_whole(r, prompt(60, 'b'));
}

TEST_F(RunsInPartsTest, StatesAreKeptAtTheEndsOfRuns) {
    start();
    std::vector<TokenId> asked = prompt(150, 'a');
    GenerateRequest request = greedy(asked, 4);
    request.cache = CacheMode::private_;
    deliver("c", r, request);
    run();
    EXPECT_GT(control->n_begun_parts, 4) << "in several runs";
    deliver("c", s, request);
    run();
    EXPECT_EQ(events<DoneEvent>("c", s).at(0).usage.cached_tokens, 128);
    EXPECT_EQ(streamed("c", s), expected(asked, 4));
    asked.resize(100);
    request.input = asked;
    deliver("c", RequestId("t"), request);
    run();
    EXPECT_EQ(events<DoneEvent>("c", RequestId("t")).at(0).usage.cached_tokens, 64);
    EXPECT_EQ(streamed("c", RequestId("t")), expected(asked, 4));
}

TEST_F(RunsInPartsTest, KvIsRewrittenBetweenRunsAndNotAmidOne) {
    settings.engine.checkpoint = {1000, kFakeBlockBytes, kFakeBlockRows};
    settings.engine.in_q4_0 = {1000, kFakeQ4BlockBytes, kFakeBlockRows};
    start();
    const std::vector<TokenId> asked = prompt(60, 'a');
    after_first_part([&] {
        LadderState state = LadderState::fresh();
        state.level = MemoryLevel::critical;
        state.rung = 5;
        caf::anon_send(wiring->scheduler, orders_of(state, LadderSettings()));
    });
    deliver("c", r, greedy(asked));
    run_until([&] { return !streamed("c", r).empty(); });
    run();
    EXPECT_EQ(control->n_converted, 1);
    std::vector<TokenId> want = fake_reply(asked, 40, end, 1);
    if (want.back() == end) want.pop_back();
    EXPECT_EQ(streamed("c", r), want);
    const auto notes = events<DoneEvent>("c", r).at(0).notes;
    EXPECT_EQ(std::count(notes.begin(), notes.end(), "kv_q4_0"), 1);
}

TEST_F(RunsInPartsTest, ScoreJobsAreReadInPartsToo) {
    start();
    const std::vector<TokenId> tokens = prompt(60, 'a');
    ScoreRequest request;
    request.tokens = tokens;
    deliver("c", r, request);
    run();
    EXPECT_GT(control->n_begun_parts, 0);
    control->n_parts = 1;
    deliver("c", s, request);
    run();
    ASSERT_EQ(events<ResultEvent>("c", r).size(), 1U);
    EXPECT_EQ(events<ResultEvent>("c", r)[0].value.dump(), events<ResultEvent>("c", s).at(0).value.dump());
}

}  // namespace
}  // namespace pantheon::actors

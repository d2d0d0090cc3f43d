// Rung 4 of the memory ladder: sequences that keep their KV in q4_0 because memory is short. The fake device
// prefers other tokens with KV in q4_0, so a reply shows in which format each of its tokens was computed.
#include <algorithm>

#include "tests/actors/daemon_fixture.h"

namespace pantheon::actors {
namespace {

using namespace std::chrono_literals;

class Q4UnderPressureTest : public DaemonTest {
  protected:
    Q4UnderPressureTest() {
        settings.engine.checkpoint = {1000, kFakeBlockBytes, kFakeBlockRows};
        settings.engine.in_q4_0 = {1000, kFakeQ4BlockBytes, kFakeBlockRows};
        settings.cache = {16, "", 1 << 20};
    }
    void order(int rung, MemoryLevel level = MemoryLevel::tight) {
        LadderState state = LadderState::fresh();
        state.level = level;
        state.rung = rung;
        LadderSettings ladder;
        ladder.slots_critical = 2;
        caf::anon_send(wiring->scheduler, orders_of(state, ladder));
        run();
    }
    /// A prompt that talks for 40 tokens in both formats and with a change between them anywhere.
    std::vector<TokenId> prompt(TokenId first, std::optional<std::size_t> n_before) const {
        for (TokenId second = 'a';; ++second) {
            std::vector<TokenId> tokens{first, second, 'y'};
            if (reply(tokens, n_before).size() == 40) return tokens;
        }
    }
    std::vector<TokenId> reply(const std::vector<TokenId>& tokens,
                               std::optional<std::size_t> n_before) const {
        std::vector<TokenId> all = fake_reply(tokens, 40, end, n_before);
        if (!all.empty() && all.back() == end) all.pop_back();
        return all;
    }
    void begin(const RequestId& id, const std::vector<TokenId>& tokens, std::optional<std::int64_t> credit) {
        GenerateRequest request = greedy(tokens);
        request.cache = CacheMode::private_;
        request.credit = credit;
        deliver("c", id, request);
    }
    void let_go(const RequestId& id) {
        deliver("c", RequestId("g"), CreditRequest{id, 100});
        run();
    }
    void wait_until_parked() {
        for (int i = 0; i < 5; ++i) pass(250ms);
        ASSERT_EQ(snapshot()->n_parked, 1);
    }
    template <class Disturb>
    void expect_goes_on_in_q4_0(Disturb disturb) {
        order(4);
        const auto tokens = prompt('k', 0);
        begin(r, tokens, 5);
        run();
        ASSERT_EQ(streamed("c", r).size(), 5U);
        order(0, MemoryLevel::ok);
        disturb();
        let_go(r);
        EXPECT_EQ(streamed("c", r), reply(tokens, 0));
        EXPECT_TRUE(has_note(r));
    }
    DoneEvent done(const RequestId& id) const { return events<DoneEvent>("c", id).at(0); }
    bool has_note(const RequestId& id) const {
        const auto notes = done(id).notes;
        return std::find(notes.begin(), notes.end(), "kv_q4_0") != notes.end();
    }

    const RequestId r{"r"}, s{"s"};
};

TEST_F(Q4UnderPressureTest, FromRungFourOnWhoeverBeginsIsInQ4AndSaysSo) {
    start();
    const auto before = prompt('a', {}), after = prompt('b', 0);
    begin(r, before, 3);
    run();
    order(4);
    begin(s, after, {});
    run();
    let_go(r);
    EXPECT_EQ(streamed("c", r), reply(before, {})) << "who runs goes on as before";
    EXPECT_FALSE(has_note(r));
    EXPECT_EQ(streamed("c", s), reply(after, 0));
    EXPECT_TRUE(has_note(s));
    order(0, MemoryLevel::ok);
    const RequestId again("again");
    begin(again, before, {});
    run();
    EXPECT_EQ(streamed("c", again), reply(before, {}));
    EXPECT_FALSE(has_note(again));
}

TEST_F(Q4UnderPressureTest, ItTakesLessOfThePool) {
    start();
    begin(r, prompt('a', {}), 20);
    run();
    EXPECT_EQ(snapshot()->kv_used_bytes, 2 * kFakeBlockBytes);
    order(4);
    begin(s, prompt('b', 0), 20);
    run();
    EXPECT_EQ(snapshot()->kv_used_bytes, 2 * kFakeBlockBytes + 2 * kFakeQ4BlockBytes);
}

TEST_F(Q4UnderPressureTest, StatesAreNotSharedBetweenTheFormats) {
    start();
    const std::vector<TokenId> tokens(100, 'p');
    const auto ask = [&](const RequestId& id) {
        GenerateRequest request = greedy(tokens, 4);
        request.cache = CacheMode::private_;
        deliver("c", id, request);
        run();
        return done(id).usage.cached_tokens;
    };
    EXPECT_EQ(ask(RequestId("1")), 0);
    EXPECT_GT(ask(RequestId("2")), 0);
    order(4);
    EXPECT_EQ(ask(RequestId("3")), 0) << "what is kept is of the configured format";
    EXPECT_EQ(streamed("c", RequestId("3")), fake_reply(tokens, 4, end, 0));
    order(0, MemoryLevel::ok);
    EXPECT_GT(ask(RequestId("4")), 0);
    EXPECT_EQ(streamed("c", RequestId("4")), fake_reply(tokens, 4, end));
}

TEST_F(Q4UnderPressureTest, ASequenceKeepsItsFormatWhileItIsParked) {
    start();
    expect_goes_on_in_q4_0([this] { wait_until_parked(); });
    EXPECT_EQ(control->n_restored, 1);
}

TEST_F(Q4UnderPressureTest, ASequenceKeepsItsFormatWhenItIsParkedWithoutItsState) {
    settings.cache.limit_bytes = 0;
    start();
    expect_goes_on_in_q4_0([this] { wait_until_parked(); });
    EXPECT_EQ(control->n_restored, 0);
}

TEST_F(Q4UnderPressureTest, ASequenceKeepsItsFormatWhenTheDieIsReplaced) {
    start();
    expect_goes_on_in_q4_0([this] {
        kill(wiring->die);
        run();
    });
}

TEST_F(Q4UnderPressureTest, ASequenceKeepsItsFormatWhenTheSchedulerIsReplaced) {
    start();
    expect_goes_on_in_q4_0([this] {
        kill(wiring->scheduler);
        run();
        pass(1s);
    });
}

TEST_F(Q4UnderPressureTest, WhenMemoryIsCriticalRunningSequencesAreConverted) {
    settings.engine.n_slots = 3;
    start();
    const std::vector<TokenId> tokens[] = {prompt('a', 20), prompt('b', 20), prompt('c', {})};
    for (std::uint64_t i = 0; i < 3; ++i) begin(RequestId(i), tokens[i], 20);
    run();
    EXPECT_EQ(control->kv_used_bytes, 3 * 2 * kFakeBlockBytes);
    order(5, MemoryLevel::critical);  // two places are left
    EXPECT_EQ(control->n_converted, 2);
    EXPECT_EQ(control->kv_used_bytes, 2 * 2 * kFakeQ4BlockBytes);
    order(0, MemoryLevel::ok);
    for (std::uint64_t i = 0; i < 3; ++i) let_go(RequestId(i));
    for (std::uint64_t i = 0; i < 2; ++i) {
        EXPECT_EQ(streamed("c", RequestId(i)), reply(tokens[i], 20)) << "from the next token on";
        EXPECT_TRUE(has_note(RequestId(i)));
    }
    EXPECT_EQ(streamed("c", RequestId(std::uint64_t{2})), reply(tokens[2], {}))
        << "the parked one is left alone";
    EXPECT_FALSE(has_note(RequestId(std::uint64_t{2})));
}

TEST_F(Q4UnderPressureTest, AParkedSequenceThatGoesOnWhileMemoryIsCriticalDoesSoInQ4) {
    start();
    const std::vector<TokenId> tokens = prompt('a', 20);
    begin(r, tokens, 20);
    run();
    for (int i = 0; i < 5; ++i) pass(250ms);
    ASSERT_EQ(snapshot()->n_parked, 1);
    order(5, MemoryLevel::critical);
    EXPECT_EQ(control->n_converted, 0);
    let_go(r);
    EXPECT_EQ(streamed("c", r), reply(tokens, 20));
    EXPECT_TRUE(has_note(r));
}

TEST_F(Q4UnderPressureTest, AConversionThatWouldTakeMoreThanItFreesIsLeft) {
    settings.engine.in_q4_0->half_block_bytes = kFakeBlockBytes;
    settings.engine.in_q4_0->window = 1000;
    start();
    const auto tokens = prompt('a', {});
    begin(r, tokens, 20);
    run();
    order(5, MemoryLevel::critical);
    EXPECT_EQ(control->n_converted, 0);
    let_go(r);
    EXPECT_EQ(streamed("c", r), reply(tokens, {}));
    EXPECT_FALSE(has_note(r));
}

TEST_F(Q4UnderPressureTest, AScoreJobStaysInTheConfiguredFormat) {
    start();
    order(4);
    deliver("c", s, ScoreRequest{std::vector<TokenId>(40, 's'), 0});
    run();
    const Json under_pressure = events<ResultEvent>("c", s).at(0).value["logprobs"];
    order(0, MemoryLevel::ok);
    deliver("c", r, ScoreRequest{std::vector<TokenId>(40, 's'), 0});
    run();
    EXPECT_EQ(under_pressure, events<ResultEvent>("c", r).at(0).value["logprobs"]);
}

TEST_F(Q4UnderPressureTest, WhereQ4IsConfiguredNothingIsSaid) {
    settings.engine.in_q4_0.reset();
    start();
    order(5, MemoryLevel::critical);
    order(4);
    begin(r, prompt('a', {}), {});
    run();
    EXPECT_EQ(streamed("c", r), reply(prompt('a', {}), {}));
    EXPECT_FALSE(has_note(r));
}

}  // namespace
}  // namespace pantheon::actors

// The prefix cache with states in f16 through the whole actor tree: which replies may be others for it, that
// they say so, and that nothing else is touched by it.
#include <algorithm>
#include <numeric>

#include "tests/actors/daemon_fixture.h"

namespace pantheon::actors {
namespace {

class RoundedStatesTest : public DaemonTest {
  protected:
    RoundedStatesTest() {
        settings.engine.checkpoint = {1000, 100, kFakeBlockRows};
        settings.engine.checkpoint.parked_extra_bytes = 1000;
        settings.engine.image_format = model::ImageFormat::f16;
        settings.cache = {64, "", 1 << 20};
    }
    /// A prompt that is followed by 40 tokens and long enough to be worth a checkpoint before its last one.
    std::vector<TokenId> prompt(TokenId first) const {
        for (TokenId second = 'a';; ++second) {
            std::vector<TokenId> tokens(300, first);
            tokens[299] = second;
            if (expected(tokens).size() == 40) return tokens;
        }
    }
    DoneEvent done(const RequestId& id) const { return events<DoneEvent>("c", id).at(0); }
    bool says_so(const RequestId& id) const {
        const auto notes = done(id).notes;
        return std::find(notes.begin(), notes.end(), "cached_f16") != notes.end();
    }
    /// One stream on the only slot, which a more urgent request takes from it after five tokens.
    void park_one(const std::vector<TokenId>& tokens) {
        deliver("c", RequestId("low"), greedy(tokens));
        run_until([&] { return streamed("c", RequestId("low")).size() == 5; });
        GenerateRequest urgent = greedy(long_talker('u'));
        urgent.priority = 5;
        urgent.cache = CacheMode::off;
        deliver("c", RequestId("urgent"), urgent);
        run();
        EXPECT_EQ(streamed("c", RequestId("low")), expected(tokens));
        const auto notes = done(RequestId("low")).notes;
        EXPECT_NE(std::find(notes.begin(), notes.end(), "parked"), notes.end());
    }
};

/// With states in f16 (true) and, for what must then be as ever, in f32.
class StatesOfBothFormatsTest : public RoundedStatesTest, public testing::WithParamInterface<bool> {
  protected:
    StatesOfBothFormatsTest() {
        if (!GetParam()) settings.engine.image_format = model::ImageFormat::f32;
    }
};

TEST_P(StatesOfBothFormatsTest, AReplyThatGoesOnFromARoundedOneSaysSoAndNoOtherDoes) {
    const bool is_f16 = GetParam();
    start();
    const RequestId cold("cold"), warm("warm"), off("off");
    deliver("c", cold, greedy(prompt('p')));
    run();
    deliver("c", warm, greedy(prompt('p')));
    run();
    GenerateRequest without = greedy(prompt('p'));
    without.cache = CacheMode::off;
    deliver("c", off, without);
    run();
    EXPECT_EQ(done(cold).usage.cached_tokens, 0);
    EXPECT_EQ(done(warm).usage.cached_tokens, 299);
    EXPECT_FALSE(says_so(cold));
    EXPECT_EQ(says_so(warm), is_f16);
    EXPECT_FALSE(says_so(off));
    EXPECT_GT(is_f16 ? control->n_rounded : control->n_exact, 0);
    EXPECT_EQ(is_f16 ? control->n_exact : control->n_rounded, 0);
    deliver("c", RequestId("s"), StatusRequest{});
    run();
    EXPECT_EQ(events<ResultEvent>("c", RequestId("s"))[0].value["cache"]["states"], is_f16 ? "f16" : "f32");
}

TEST_P(StatesOfBothFormatsTest, AStreamThatBeganFromNothingAndIsEvaluatedAgainGoesOnFromExactStatesOnly) {
    const bool is_f16 = GetParam();
    settings.engine.n_slots = 1;
    settings.engine.checkpoint.parked_extra_bytes = 2 << 20;  // room for checkpoints and no parked sequence
    start();
    park_one(prompt('p'));
    EXPECT_EQ(control->n_restored, is_f16 ? 0 : 1);
    EXPECT_FALSE(says_so(RequestId("low")));
    // For another reply the checkpoint is there.
    deliver("c", RequestId("later"), greedy(prompt('p')));
    run();
    EXPECT_EQ(done(RequestId("later")).usage.cached_tokens, 299);
    EXPECT_EQ(control->n_restored_rounded, is_f16 ? 1 : 0);
}

INSTANTIATE_TEST_SUITE_P(Formats, StatesOfBothFormatsTest, testing::Bool(),
                         [](const auto& tested) { return tested.param ? "f16" : "f32"; });

TEST_F(RoundedStatesTest, AParkedStreamIsKeptExactlyAndGoesOnFromThat) {
    settings.engine.n_slots = 1;
    start();
    park_one(prompt('p'));
    EXPECT_EQ(control->n_exact, 1);
    EXPECT_EQ(control->n_restored, 1);
    EXPECT_EQ(control->n_restored_rounded, 0);
    EXPECT_FALSE(says_so(RequestId("low")));
}

TEST_F(RoundedStatesTest, AKilledDieMakesNoReplyAnotherOne) {
    start();
    deliver("c", RequestId("first"), greedy(prompt('p')));
    run();
    deliver("c", RequestId("other"), greedy(prompt('q')));
    run_until([&] { return streamed("c", RequestId("other")).size() == 5; });
    kill(wiring->die);
    run();
    EXPECT_EQ(streamed("c", RequestId("other")), expected(prompt('q')));
    EXPECT_EQ(control->n_restored, 0);
    EXPECT_FALSE(says_so(RequestId("other")));
}

}  // namespace
}  // namespace pantheon::actors

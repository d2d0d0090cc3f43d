// Reasoning with a budget, and what a client hears while no token can come.
#include "model/chat/chat_template.h"
#include "tests/actors/daemon_fixture.h"

namespace pantheon::actors {
namespace {

using namespace std::chrono_literals;

class ThinkingTest : public DaemonTest {
  protected:
    /// A chat whose reply goes on for at least 40 tokens, whatever is closed when.
    GenerateRequest chat(std::optional<std::int64_t> budget, std::int64_t max_tokens = 30) const {
        GenerateRequest request = greedy({}, max_tokens);
        request.input = messages();
        request.thinking_budget = budget;
        request.sampling.logit_bias = {{end, -1000.0F}};
        return request;
    }
    static Json messages() { return Json::array({Json{{"role", "user"}, {"content", "think of me"}}}); }

    std::vector<TokenId> close() const {
        return settings.text.tokenizer->encode("\n</think>\n\n", /*special=*/true);
    }

    /// What the fake device answers when the reasoning is closed after `budget` tokens.
    std::vector<TokenId> expected_reply(std::optional<std::int64_t> budget, std::size_t n) const {
        model::TemplateOptions options;
        options.family = settings.text.family;
        const auto rendered = model::render_chat(messages(), Json(), options);
        std::vector<TokenId> sequence = settings.text.tokenizer->encode(rendered->text, rendered->trusted);
        std::vector<TokenId> reply;
        const std::vector<TokenId> closing = close();
        while (reply.size() < n) {
            const auto i = static_cast<std::int64_t>(reply.size()) - budget.value_or(1 << 20);
            TokenId next = fake_next_token(sequence, end);
            if (next == end) next = 0;  // biased away; every other logit is equal, the lowest id wins
            if (i >= 0 && i < static_cast<std::int64_t>(closing.size()))
                next = closing[static_cast<std::size_t>(i)];
            sequence.push_back(next);
            reply.push_back(next);
        }
        return reply;
    }

    DoneEvent done(const RequestId& id) const {
        const auto all = events<DoneEvent>("c", id);
        EXPECT_EQ(all.size(), 1U);
        return all.empty() ? DoneEvent() : all.front();
    }
};

TEST_F(ThinkingTest, ABudgetClosesTheReasoningAndTheAnswerFollows) {
    start();
    for (const std::int64_t budget : {0, 1, 7, 25}) {
        SCOPED_TRACE(budget);
        const RequestId id = static_cast<std::uint64_t>(budget);
        deliver("c", id, chat(budget));
        run();
        EXPECT_EQ(streamed("c", id), expected_reply(budget, 30));
        EXPECT_EQ(done(id).usage.completion_tokens, 30);
        EXPECT_EQ(done(id).usage.reasoning_tokens, budget + 2);  // the line break and </think>
        EXPECT_EQ(done(id).reasoning.size(), static_cast<std::size_t>(budget));
        EXPECT_FALSE(done(id).text.empty());
        EXPECT_EQ(done(id).text.find('<'), std::string::npos);
        EXPECT_EQ(done(id).finish, "length");
    }
}

TEST_F(ThinkingTest, ABudgetThatIsNotUsedUpChangesNothing) {
    start();
    deliver("c", RequestId("none"), chat({}));
    deliver("c", RequestId("large"), chat(100));
    GenerateRequest off = chat(3);
    off.thinking = false;
    deliver("c", RequestId("off"), off);
    run();
    EXPECT_EQ(streamed("c", RequestId("none")), expected_reply({}, 30));
    EXPECT_EQ(streamed("c", RequestId("large")), expected_reply({}, 30));
    EXPECT_TRUE(done(RequestId("off")).reasoning.empty());
    EXPECT_EQ(done(RequestId("off")).usage.reasoning_tokens, 0);
}

TEST_F(ThinkingTest, ReasoningThatEndsByItselfIsNotClosedAgain) {
    start();
    GenerateRequest request = chat(10, 20);
    // Everything but </think> is out of reach: the first token ends the reasoning.
    const TokenId close_token = settings.text.tokenizer->find("</think>");
    request.sampling.logit_bias.emplace_back(close_token, 100.0F);
    deliver("c", RequestId("r"), request);
    run();
    EXPECT_EQ(streamed("c", RequestId("r")), std::vector<TokenId>(20, close_token));
    EXPECT_EQ(done(RequestId("r")).usage.reasoning_tokens, 1);
}

TEST_F(ThinkingTest, TheTokenLimitAndCreditHoldWhileTheBlockIsClosed) {
    start();
    deliver("c", RequestId("short"), chat(4, 6));
    run();
    EXPECT_EQ(streamed("c", RequestId("short")), expected_reply(4, 6));
    EXPECT_EQ(done(RequestId("short")).finish, "length");

    GenerateRequest held = chat(4, 12);
    held.credit = 5;
    deliver("c", RequestId("held"), held);
    run();
    EXPECT_EQ(streamed("c", RequestId("held")), expected_reply(4, 5));
    deliver("c", RequestId("credit"), CreditRequest{RequestId("held"), 100});
    run();
    EXPECT_EQ(streamed("c", RequestId("held")), expected_reply(4, 12));
}

TEST_F(ThinkingTest, WorksTogetherWithStopStringsAndLogprobs) {
    start();
    GenerateRequest request = chat(5);
    request.stop = {"never seen"};
    request.logprobs = 1;
    deliver("c", RequestId("r"), request);
    run();
    EXPECT_EQ(streamed("c", RequestId("r")), expected_reply(5, 30));
    const auto tokens = events<TokenEvent>("c", RequestId("r"));
    ASSERT_EQ(tokens.size(), 30U);
    for (const TokenEvent& event : tokens) {
        const bool is_given = event.i >= 5 && event.i < 5 + static_cast<std::int64_t>(close().size());
        EXPECT_EQ(event.logprob.has_value(), !is_given) << event.i;
    }
}

TEST_F(ThinkingTest, AReplacedDieOrSchedulerClosesAtTheSamePlace) {
    settings.limits.queue = 64;
    start();
    for (std::size_t n = 0; n < 14; n += 1) {
        SCOPED_TRACE(n);
        const RequestId id = static_cast<std::uint64_t>(n);
        deliver("c", id, chat(5));
        run_until([&] { return streamed("c", id).size() >= n; });
        // Alternating, and far apart, so that no restart budget is used up.
        if (n % 3 == 0)
            kill(wiring->die);
        else if (n % 3 == 1)
            kill(wiring->scheduler);
        run();
        EXPECT_EQ(streamed("c", id), expected_reply(5, 30));
        EXPECT_EQ(done(id).finish, "length");
    }
}

TEST_F(ThinkingTest, ABudgetNeedsMessagesAndMayNotBeNegative) {
    start();
    GenerateRequest raw = greedy({'a'});
    raw.thinking_budget = 3;
    deliver("c", RequestId("raw"), raw);
    deliver("c", RequestId("negative"), chat(-1));
    run();
    for (const char* id : {"raw", "negative"}) {
        const auto errors = events<ErrorEvent>("c", RequestId(id));
        ASSERT_EQ(errors.size(), 1U) << id;
        EXPECT_EQ(errors[0].error.code(), Code::invalid_argument);
        EXPECT_NE(errors[0].error.message().find("thinking_budget"), std::string::npos);
    }
}

// ---- progress

TEST_F(DaemonTest, ARequestThatWaitsHearsSoOnceASecond) {
    settings.engine.n_slots = 1;
    settings.limits.queue = 64;
    start();
    GenerateRequest holder = greedy(long_talker('a'));
    holder.credit = 1;
    // Each is parked after a second, until as many are under way as may be.
    for (int i = 0; i < settings.engine.n_seats(); ++i)
        deliver("c", RequestId("holder" + std::to_string(i)), holder);
    for (int i = 0; i < 100; ++i) pass(250ms);
    deliver("c", RequestId("waiting"), greedy({'w', 'a', 'i', 't'}));
    run();
    for (int i = 0; i < 12; ++i) pass(250ms);
    const auto progress = events<ProgressEvent>("c", RequestId("waiting"));
    ASSERT_EQ(progress.size(), 3U);
    for (const ProgressEvent& event : progress) {
        EXPECT_EQ(event.phase, "queued");
        EXPECT_EQ(event.done, 0);
        EXPECT_EQ(event.total, 4);
    }
    for (const ProgressEvent& event : events<ProgressEvent>("c", RequestId("holder0")))
        EXPECT_EQ(event.phase, "parked");
}

TEST_F(DaemonTest, APromptBeingReadReportsHowFarItIs) {
    start();
    const std::vector<TokenId> prompt(300, 'z');
    deliver("c", RequestId("r"), greedy(prompt));
    control->rows_per_step.clear();  // of the canary
    run_until([&] { return control->rows_per_step.size() == 1; });
    // The step that reads the second chunk takes three seconds.
    control->during_next_step = [&] {
        for (int i = 0; i < 12; ++i) pass(250ms);
    };
    run();
    const auto progress = events<ProgressEvent>("c", RequestId("r"));
    ASSERT_EQ(progress.size(), 3U);
    for (const ProgressEvent& event : progress) {
        EXPECT_EQ(event.phase, "prefill");
        EXPECT_EQ(event.done, static_cast<std::int64_t>(control->rows_per_step.front()));
        EXPECT_EQ(event.total, 300);
    }
    EXPECT_EQ(streamed("c", RequestId("r")), expected(prompt));
}

}  // namespace
}  // namespace pantheon::actors

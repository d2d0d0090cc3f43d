// What a client sees of one or many requests while nothing fails.
#include <thread>

#include "tests/actors/daemon_fixture.h"

namespace pantheon::actors {
namespace {

using namespace std::chrono_literals;

TEST_F(DaemonTest, StreamsTheReplyWithOneAcceptedAndOneDone) {
    start();
    ASSERT_TRUE(is_ready);
    deliver("c", RequestId("r"), greedy({'h', 'i'}));
    run();
    ASSERT_EQ(events<AcceptedEvent>("c", RequestId("r")).size(), 1U);
    EXPECT_EQ(events<AcceptedEvent>("c", RequestId("r"))[0].max_tokens, 40);
    EXPECT_EQ(streamed("c", RequestId("r")), expected({'h', 'i'}));
    const auto done = events<DoneEvent>("c", RequestId("r"));
    ASSERT_EQ(done.size(), 1U);
    std::string text;
    std::int64_t i = 0;
    for (const TokenEvent& event : events<TokenEvent>("c", RequestId("r"))) {
        text += event.text;
        if (event.token) {
            EXPECT_EQ(event.i, i++);
        }
    }
    EXPECT_EQ(done[0].text, text);
    EXPECT_EQ(done[0].usage.prompt_tokens, 2);
    EXPECT_EQ(done[0].usage.completion_tokens,
              static_cast<std::int64_t>(fake_reply({'h', 'i'}, 40, end).size()));
    EXPECT_TRUE(std::holds_alternative<AcceptedEvent>(port->sent.front().event));
    EXPECT_TRUE(std::holds_alternative<DoneEvent>(port->sent.back().event));
}

TEST_F(DaemonTest, MoreRequestsThanSlotsEachGetTheReplyThatTheyGetAlone) {
    settings.limits.queue = 64;
    start();
    control->rows_per_step.clear();  // of the canary
    for (std::uint64_t r = 0; r < 24; ++r)
        deliver("c" + std::to_string(r % 3), RequestId(r), greedy({static_cast<TokenId>('a' + r), 'q'}));
    run();
    for (std::uint64_t r = 0; r < 24; ++r) {
        const RoutingId client = "c" + std::to_string(r % 3);
        EXPECT_EQ(streamed(client, RequestId(r)), expected({static_cast<TokenId>('a' + r), 'q'})) << r;
        EXPECT_EQ(events<DoneEvent>(client, RequestId(r)).size(), 1U) << r;
    }
    // Rows of several requests shared steps.
    EXPECT_GT(*std::max_element(control->rows_per_step.begin(), control->rows_per_step.end()), 3U);
}

TEST_F(DaemonTest, ALongPromptIsReadInChunksBesideRunningReplies) {
    start();
    std::vector<TokenId> prompt(300, 'z');
    deliver("c", RequestId("short"), greedy(long_talker('a')));
    deliver("c", RequestId("long"), greedy(prompt));
    run();
    EXPECT_EQ(streamed("c", RequestId("short")), expected(long_talker('a')));
    EXPECT_EQ(streamed("c", RequestId("long")), expected(prompt));
}

TEST_F(DaemonTest, ASlidingContextDoesNotLimitTheReply) {
    settings.limits.n_ctx = 16;
    settings.limits.slides = true;
    start();
    deliver("c", RequestId("a"), greedy(long_talker('b'), 40));
    run();
    EXPECT_EQ(streamed("c", RequestId("a")).size(), 40U);
    EXPECT_EQ(events<DoneEvent>("c", RequestId("a"))[0].finish, "length");
}

TEST_F(DaemonTest, MaxTokensEndsWithLengthAndTheContextLimitsIt) {
    settings.limits.n_ctx = 16;
    start();
    const std::vector<TokenId> prompt = long_talker('b');
    deliver("c", RequestId("a"), greedy(prompt, 5));
    deliver("c", RequestId("b"), greedy(prompt, 60));
    run();
    EXPECT_EQ(streamed("c", RequestId("a")).size(), 5U);
    EXPECT_EQ(events<DoneEvent>("c", RequestId("a"))[0].finish, "length");
    EXPECT_EQ(streamed("c", RequestId("b")).size(), 14U);  // n_ctx − n + 1
    EXPECT_EQ(events<AcceptedEvent>("c", RequestId("b"))[0].max_tokens, 14);
}

TEST_F(DaemonTest, RefusesWhatItCannotServeWithOneErrorAndNoAccepted) {
    start();
    struct Case {
        const char* name;
        GenerateRequest request;
        Code code;
        const char* names;
    };
    std::vector<Case> cases;
    cases.push_back({"id past the vocabulary", greedy({1 << 20}), Code::invalid_argument, "tokens[0]"});
    cases.push_back({"empty prompt", greedy({}), Code::invalid_argument, "prompt"});
    cases.push_back(
        {"prompt past n_ctx", greedy(std::vector<TokenId>(513, 'a')), Code::invalid_argument, "512"});
    cases.push_back({"no tokens wanted", greedy({'a'}, 0), Code::invalid_argument, "max_tokens"});
    cases.push_back({"nan", greedy({'a'}), Code::invalid_argument, "temperature"});
    cases.back().request.sampling.temperature = std::nan("");
    cases.push_back({"bias past the vocabulary", greedy({'a'}), Code::invalid_argument, "logit_bias"});
    cases.back().request.sampling.logit_bias = {{1 << 20, 1.0F}};
    cases.push_back({"thinking budget", greedy({'a'}), Code::invalid_argument, "thinking_budget"});
    cases.back().request.thinking_budget = 10;
    cases.push_back({"session without a cache", greedy({'a'}), Code::invalid_argument, "session"});
    cases.back().request.session = "s";
    cases.back().request.cache = CacheMode::off;
    cases.push_back({"empty stop", greedy({'a'}), Code::invalid_argument, "stop[0]"});
    cases.back().request.stop = {""};
    cases.push_back({"bad message", greedy({'a'}), Code::invalid_argument, "messages[0]"});
    cases.back().request.input = Json::array({Json{{"role", "nobody"}, {"content", "x"}}});
    for (std::size_t i = 0; i < cases.size(); ++i) {
        SCOPED_TRACE(cases[i].name);
        deliver("c", RequestId(i), cases[i].request);
        run();
        const auto errors = events<ErrorEvent>("c", RequestId(i));
        ASSERT_EQ(errors.size(), 1U);
        EXPECT_EQ(errors[0].error.code(), cases[i].code) << errors[0].error.to_string();
        EXPECT_NE(errors[0].error.message().find(cases[i].names), std::string::npos)
            << errors[0].error.to_string();
        EXPECT_TRUE(events<AcceptedEvent>("c", RequestId(i)).empty());
        EXPECT_TRUE(events<DoneEvent>("c", RequestId(i)).empty());
    }
}

TEST_F(DaemonTest, AFullQueueRefusesWithARetryHint) {
    settings.limits.queue = 2;
    settings.engine.n_slots = 1;
    start();
    for (std::uint64_t r = 0; r < 6; ++r) deliver("c", RequestId(r), greedy(long_talker('a')));
    run();
    int n_refused = 0;
    for (std::uint64_t r = 0; r < 6; ++r)
        for (const ErrorEvent& error : events<ErrorEvent>("c", RequestId(r))) {
            ++n_refused;
            EXPECT_EQ(error.error.code(), Code::resource_exhausted);
            ASSERT_TRUE(error.retry_after_ms);
            EXPECT_GT(*error.retry_after_ms, 0);
        }
    EXPECT_GT(n_refused, 0);
    EXPECT_LE(n_refused, 3);
}

TEST_F(DaemonTest, AnIdInUseIsRefusedAndMayBeUsedAgainAfterDone) {
    start();
    const auto prompt = long_talker('a');
    deliver("c", RequestId("r"), greedy(prompt));
    run_until([&] { return !streamed("c", RequestId("r")).empty(); });
    deliver("c", RequestId("r"), greedy(prompt));
    run();
    ASSERT_EQ(events<ErrorEvent>("c", RequestId("r")).size(), 1U);
    EXPECT_EQ(events<DoneEvent>("c", RequestId("r")).size(), 1U);
    deliver("c", RequestId("r"), greedy(prompt));
    run();
    EXPECT_EQ(events<DoneEvent>("c", RequestId("r")).size(), 2U);
}

TEST_F(DaemonTest, CancelEndsARequestInEveryPhaseWithExactlyOneDone) {
    settings.engine.n_slots = 1;
    start();
    const auto prompt = long_talker('a');
    deliver("c", RequestId("running"), greedy(prompt));
    deliver("c", RequestId("queued"), greedy(prompt));
    run_until([&] { return streamed("c", RequestId("running")).size() == 3; });
    deliver("c", RequestId(std::uint64_t{1}), CancelRequest{RequestId("running")});
    deliver("c", RequestId(std::uint64_t{2}), CancelRequest{RequestId("queued")});
    deliver("c", RequestId("preparing"), greedy(prompt));
    deliver("c", RequestId(std::uint64_t{3}), CancelRequest{RequestId("preparing")});
    deliver("c", RequestId(std::uint64_t{4}), CancelRequest{RequestId("unknown")});
    run();
    for (const char* id : {"running", "queued", "preparing"}) {
        SCOPED_TRACE(id);
        ASSERT_EQ(events<DoneEvent>("c", RequestId(id)).size(), 1U);
        EXPECT_EQ(events<DoneEvent>("c", RequestId(id))[0].finish, "cancelled");
    }
    for (std::uint64_t i = 1; i <= 4; ++i)
        EXPECT_EQ(events<ResultEvent>("c", RequestId(i))[0].value["cancelled"], i < 4);
    EXPECT_LT(streamed("c", RequestId("running")).size(), 8U);
    // The slot is free again.
    deliver("c", RequestId("next"), greedy({'n'}));
    run();
    EXPECT_EQ(streamed("c", RequestId("next")), expected({'n'}));
}

TEST_F(DaemonTest, CancelReachesAnotherConnectionOfTheSameUserOnly) {
    start();
    const auto prompt = long_talker('a');
    deliver("c", RequestId("r"), greedy(prompt), 1000);
    run_until([&] { return !streamed("c", RequestId("r")).empty(); });
    deliver("other", RequestId("x"), CancelRequest{RequestId("r")}, 1001);
    deliver("tool", RequestId("x"), CancelRequest{RequestId("r")}, 1000);
    run();
    EXPECT_EQ(events<ResultEvent>("other", RequestId("x"))[0].value["cancelled"], false);
    EXPECT_EQ(events<ResultEvent>("tool", RequestId("x"))[0].value["cancelled"], true);
    EXPECT_EQ(events<DoneEvent>("c", RequestId("r"))[0].finish, "cancelled");
}

TEST_F(DaemonTest, CreditBoundsTheTokenEventsUntilMoreIsGranted) {
    start();
    GenerateRequest request = greedy(long_talker('a'));
    request.credit = 3;
    deliver("c", RequestId("r"), request);
    run();
    EXPECT_EQ(streamed("c", RequestId("r")).size(), 3U);
    EXPECT_TRUE(events<DoneEvent>("c", RequestId("r")).empty());
    deliver("c", RequestId("g"), CreditRequest{RequestId("r"), 2});
    run();
    EXPECT_EQ(streamed("c", RequestId("r")).size(), 5U);
    deliver("c", RequestId("g"), CreditRequest{RequestId("r"), 100});
    run();
    EXPECT_EQ(streamed("c", RequestId("r")), expected(long_talker('a')));
    EXPECT_TRUE(events<ResultEvent>("c", RequestId("g")).empty());
}

TEST_F(DaemonTest, CreditOfZeroReadsThePromptAndWaits) {
    start();
    GenerateRequest request = greedy(long_talker('a'));
    request.credit = 0;
    deliver("c", RequestId("r"), request);
    run();
    EXPECT_TRUE(streamed("c", RequestId("r")).empty());
    deliver("c", RequestId("g"), CreditRequest{RequestId("r"), 100});
    run();
    EXPECT_EQ(streamed("c", RequestId("r")), expected(long_talker('a')));
}

TEST_F(DaemonTest, AStopStringEndsTheReplyBeforeIt) {
    start();
    const auto prompt = long_talker('a');
    const auto reply = expected(prompt);
    GenerateRequest request = greedy(prompt);
    request.stop = {
        std::string{static_cast<char>(reply[5]), static_cast<char>(reply[6]), static_cast<char>(reply[7])}};
    deliver("c", RequestId("r"), request);
    run();
    const auto done = events<DoneEvent>("c", RequestId("r"));
    ASSERT_EQ(done.size(), 1U);
    EXPECT_EQ(done[0].finish, "stop");
    EXPECT_EQ(done[0].stop_match, request.stop[0]);
    const std::string whole(reply.begin(), reply.end());
    EXPECT_EQ(done[0].text, whole.substr(0, whole.find(request.stop[0])));
    // Nothing was computed past the stop: the CPU die waits for the verdict.
    EXPECT_EQ(done[0].usage.completion_tokens, static_cast<std::int64_t>(done[0].text.size() + 3));
}

TEST_F(DaemonTest, LogprobsComeWithTheTokensWhenAsked) {
    start();
    GenerateRequest request = greedy({'a', 'b'});
    request.logprobs = 2;
    deliver("c", RequestId("r"), request);
    run();
    for (const TokenEvent& event : events<TokenEvent>("c", RequestId("r"))) {
        if (!event.token) continue;
        ASSERT_TRUE(event.logprob && event.top);
        EXPECT_EQ(event.top->size(), 2U);
        EXPECT_EQ(event.top->front().token, *event.token);
        EXPECT_FLOAT_EQ(event.top->front().logprob, *event.logprob);
    }
}

TEST_F(DaemonTest, UnstreamedGivesOnlyAcceptedAndDone) {
    start();
    GenerateRequest request = greedy(long_talker('a'));
    request.stream = false;
    deliver("c", RequestId("r"), request);
    run();
    EXPECT_TRUE(events<TokenEvent>("c", RequestId("r")).empty());
    const auto reply = expected(long_talker('a'));
    EXPECT_EQ(events<DoneEvent>("c", RequestId("r"))[0].text, std::string(reply.begin(), reply.end()));
}

TEST_F(DaemonTest, AHigherPriorityOvertakesTheQueueAndWhatRuns) {
    settings.engine.n_slots = 1;
    start();
    deliver("c", RequestId("first"), greedy(long_talker('a')));
    run_until([&] { return !streamed("c", RequestId("first")).empty(); });
    GenerateRequest urgent = greedy({'u'});
    urgent.priority = 5;
    deliver("c", RequestId("normal"), greedy({'n'}));
    deliver("c", RequestId("urgent"), urgent);
    run();
    std::vector<std::string> order;
    for (const FakePort::Sent& sent : port->sent)
        if (std::holds_alternative<DoneEvent>(sent.event)) order.push_back(std::get<std::string>(sent.id));
    EXPECT_EQ(order, (std::vector<std::string>{"urgent", "first", "normal"}));
}

TEST_F(DaemonTest, ADeadlineEndsWaitingAndRunningRequests) {
    settings.engine.n_slots = 1;
    start();
    GenerateRequest held = greedy(long_talker('a'));
    held.credit = 1;
    held.deadline_ms = 1;
    GenerateRequest waiting = greedy({'w'});
    waiting.deadline_ms = 1;
    deliver("c", RequestId("held"), held);
    deliver("c", RequestId("waiting"), waiting);
    run();
    std::this_thread::sleep_for(3ms);
    pass(250ms);
    for (const char* id : {"held", "waiting"}) {
        const auto done = events<DoneEvent>("c", RequestId(id));
        ASSERT_EQ(done.size(), 1U) << id;
        EXPECT_EQ(done[0].finish, "deadline");
        EXPECT_EQ(done[0].error->code(), Code::deadline_exceeded);
    }
    EXPECT_EQ(streamed("c", RequestId("held")).size(), 1U);
}

TEST_F(DaemonTest, AVanishedClientsRequestsEndAndItsSlotsServeOthers) {
    settings.engine.n_slots = 1;
    start();
    deliver("gone", RequestId("a"), greedy(long_talker('a')));
    deliver("gone", RequestId("b"), greedy(long_talker('a')));
    run_until([&] { return streamed("gone", RequestId("a")).size() == 2; });
    port->deliver(ClientGone{"gone"});
    deliver("here", RequestId("r"), greedy({'h'}));
    run();
    EXPECT_LT(streamed("gone", RequestId("a")).size(), 10U);
    EXPECT_TRUE(streamed("gone", RequestId("b")).empty());
    EXPECT_EQ(streamed("here", RequestId("r")), expected({'h'}));
}

TEST_F(DaemonTest, AClientThatDoesNotReadIsPausedThenCancelled) {
    settings.limits.stall = 10ms;
    start();
    deliver("slow", RequestId("r"), greedy(long_talker('a')));
    run_until([&] { return streamed("slow", RequestId("r")).size() == 2; });
    port->deliver(ClientBacklog{"slow", true});
    run();
    const auto n_before = streamed("slow", RequestId("r")).size();
    EXPECT_LT(n_before, 8U);
    port->deliver(ClientBacklog{"slow", false});
    run_until([&] { return streamed("slow", RequestId("r")).size() > n_before; });
    port->deliver(ClientBacklog{"slow", true});
    run();
    std::this_thread::sleep_for(12ms);
    pass(500ms);
    const auto done = events<DoneEvent>("slow", RequestId("r"));
    ASSERT_EQ(done.size(), 1U);
    EXPECT_EQ(done[0].finish, "cancelled");
    EXPECT_EQ(done[0].error->code(), Code::resource_exhausted);
}

TEST_F(DaemonTest, ScoreGivesTheLogprobOfEveryTokenButTheFirst) {
    start();
    const std::vector<TokenId> tokens{'s', fake_next_token(std::vector<TokenId>{'s'}, end), 'x', 'y'};
    deliver("c", RequestId("s"), ScoreRequest{tokens, 2});
    deliver("c", RequestId("one"), ScoreRequest{{'s'}, 0});
    run();
    const Json result = events<ResultEvent>("c", RequestId("s"))[0].value;
    ASSERT_EQ(result["logprobs"].size(), 4U);
    EXPECT_TRUE(result["logprobs"][0].is_null());
    EXPECT_NEAR(result["logprobs"][1].get<double>(), 0.0, 1e-3);
    EXPECT_LT(result["logprobs"][2].get<double>(), -5.0);
    ASSERT_EQ(result["top"].size(), 4U);
    EXPECT_EQ(result["top"][1][0][0], tokens[1]);
    EXPECT_EQ(events<ResultEvent>("c", RequestId("one"))[0].value["logprobs"], Json::array({nullptr}));
}

TEST_F(DaemonTest, TextOpsAnswerWithoutTheEngine) {
    start();
    deliver("c", RequestId("t"), TokenizeRequest{"hi", false});
    run();
    const Json tokens = events<ResultEvent>("c", RequestId("t"))[0].value["tokens"];
    ASSERT_FALSE(tokens.empty());
    deliver("c", RequestId("d"), DetokenizeRequest{tokens.get<std::vector<TokenId>>(), true});
    deliver("c", RequestId("m"),
            TemplateRequest{Json::array({Json{{"role", "user"}, {"content", "hi"}}}), nullptr, {}, true});
    run();
    EXPECT_EQ(events<ResultEvent>("c", RequestId("d"))[0].value["text"], "hi");
    EXPECT_EQ(events<ResultEvent>("c", RequestId("m"))[0].value["text"],
              "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n<think>\n");
}

TEST_F(DaemonTest, StatusShowsStateSlotsAndTheCallersRequestsOnly) {
    start();
    GenerateRequest held = greedy(long_talker('a'));
    held.credit = 1;
    deliver("c", RequestId("mine"), held, 1000);
    deliver("d", RequestId("theirs"), held, 2000);
    run();
    deliver("c", RequestId("s"), StatusRequest{}, 1000);
    run();
    const Json status = events<ResultEvent>("c", RequestId("s"))[0].value;
    EXPECT_EQ(status["state"], "ready");
    EXPECT_EQ(status["protocol"], 1);
    EXPECT_EQ(status["engines"][0]["slots"]["busy"], 2);
    ASSERT_EQ(status["requests"].size(), 1U);
    EXPECT_EQ(status["requests"][0]["id"], "mine");
}

TEST_F(DaemonTest, ADrainLetsRunningRequestsFinishAndRefusesNewOnes) {
    start();
    deliver("c", RequestId("r"), greedy(long_talker('a')));
    run_until([&] { return !streamed("c", RequestId("r")).empty(); });
    caf::anon_send(root, BeginDrain{10s});
    run_until([&] { return !port->has_sink() || streamed("c", RequestId("r")).size() > 3; });
    deliver("c", RequestId("late"), greedy({'l'}));
    run();
    EXPECT_EQ(events<ErrorEvent>("c", RequestId("late"))[0].error.code(), Code::unavailable);
    EXPECT_EQ(streamed("c", RequestId("r")), expected(long_talker('a')));
    pass(100ms);
    EXPECT_TRUE(is_stopped);
}

TEST_F(DaemonTest, ADrainThatTakesTooLongCancelsWhatIsLeft) {
    start();
    GenerateRequest held = greedy(long_talker('a'));
    held.credit = 1;
    deliver("c", RequestId("r"), held);
    run();
    caf::anon_send(root, BeginDrain{0ms});
    run();
    std::this_thread::sleep_for(2ms);
    pass(500ms);
    pass(100ms);
    ASSERT_EQ(events<DoneEvent>("c", RequestId("r")).size(), 1U);
    EXPECT_EQ(events<DoneEvent>("c", RequestId("r"))[0].error->code(), Code::unavailable);
    EXPECT_TRUE(is_stopped);
}

}  // namespace
}  // namespace pantheon::actors

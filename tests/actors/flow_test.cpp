// Who waits for whom: streams and prompts that are read beside them, clients that do not take what they asked
// for, and what is counted of it.
#include <thread>

#include "tests/actors/daemon_fixture.h"

namespace pantheon::actors {
namespace {

using namespace std::chrono_literals;

class FlowTest : public DaemonTest {
  protected:
    std::string metrics() {
        const RequestId id("metrics " + std::to_string(n_asked++));
        deliver("observer", id, MetricsRequest{});
        run();
        return events<ResultEvent>("observer", id).at(0).value["text"].get<std::string>();
    }
    void expect_metric(const std::string& line) {
        EXPECT_NE(metrics().find("\n" + line + "\n"), std::string::npos) << line;
    }

    int n_asked = 0;
};

// ---- streams beside a prompt that is read

/// A device that takes its time, and what its steps carried while `prompt` was read.
class ReadingBesideStreamsTest : public FlowTest {
  protected:
    ReadingBesideStreamsTest() {
        settings.limits.n_ctx = 4096;
        settings.limits.max_tokens = 160;
        settings.limits.max_gap = 40ms;
    }
    void expect_turns(const std::vector<std::string>& stop) {
        start();
        control->during_each_step = [this](std::span<const model::StepRun> runs) {
            std::size_t n_rows = 0, n_decoding = 0;
            for (const model::StepRun& run : runs) {
                n_rows += run.tokens.size();
                n_decoding += run.tokens.size() == 1;
            }
            std::this_thread::sleep_for(3ms + n_rows * 1ms);
            const bool has_chunk = n_decoding < runs.size();
            if (has_chunk) ++n_reading;
            if (n_reading > 0 && !has_chunk) ++n_since;
            if (has_chunk) n_between += std::exchange(n_since, 0);
        };
        GenerateRequest stream = greedy(long_talker('a', 160), 160);
        stream.stop = stop;
        deliver("c", RequestId("stream"), stream);
        run_until([&] { return streamed("c", RequestId("stream")).size() == 5; });
        n_reading = n_since = n_between = 0;
        deliver("c", RequestId("newcomer"), greedy(std::vector<TokenId>(150, 'p'), 1));
        run_until([&] { return !events<DoneEvent>("c", RequestId("newcomer")).empty(); });
        EXPECT_GE(n_reading, 4);
        EXPECT_GE(n_between, n_reading) << "between two chunks the stream decodes alone";
        EXPECT_TRUE(events<DoneEvent>("c", RequestId("stream")).empty()) << "it was there all the time";
        run();
    }
    int n_reading = 0, n_since = 0, n_between = 0;
};

TEST_F(ReadingBesideStreamsTest, StreamsDecodeBetweenTheChunksOfAPrompt) {
    expect_turns({});
}

TEST_F(ReadingBesideStreamsTest, AlsoStreamsWhoseSlotsSeeEachTokenFirst) {
    expect_turns({"never said"});
}

// ---- clients that do not take what they asked for

TEST_F(FlowTest, AStreamWaitsForCreditAsLongAsNobodyNeedsItsPlace) {
    settings.limits.stall = 2000ms;
    start();
    GenerateRequest held = greedy(long_talker('a'));
    held.credit = 3;
    deliver("c", RequestId("held"), held);
    run();
    for (int i = 0; i < 40; ++i) pass(250ms);
    EXPECT_TRUE(events<DoneEvent>("c", RequestId("held")).empty());
    deliver("c", RequestId("g"), CreditRequest{RequestId("held"), 100});
    run();
    EXPECT_EQ(streamed("c", RequestId("held")), expected(long_talker('a')));
    expect_metric("pantheon_requests_ended_slow_total{reason=\"credit\"} 0");
}

TEST_F(FlowTest, TheOneThatHasWaitedLongestForCreditEndsWhenAllPlacesAreHeldThatWay) {
    settings.engine.n_slots = 1;
    settings.limits.stall = 2000ms;
    settings.limits.queue = 64;
    start();
    const auto n_seats = static_cast<std::uint64_t>(settings.engine.n_seats());
    const auto hold = [&](std::uint64_t r) {
        GenerateRequest held = greedy(long_talker('a'));
        held.credit = 0;
        deliver("holder", RequestId(r), held);
        run();
        for (int i = 0; i < 5; ++i) pass(250ms);  // it is parked, and the next one begins
    };
    for (std::uint64_t r = 0; r < n_seats; ++r) hold(r);
    EXPECT_EQ(snapshot()->n_parked, static_cast<int>(n_seats));
    deliver("other", RequestId("o"), greedy(long_talker('b')));
    run();
    EXPECT_TRUE(streamed("other", RequestId("o")).empty());
    for (int i = 0; i < 2; ++i) pass(250ms);
    EXPECT_EQ(streamed("other", RequestId("o")), expected(long_talker('b')));
    const auto ended = events<DoneEvent>("holder", RequestId(std::uint64_t{0}));
    ASSERT_EQ(ended.size(), 1U) << "the first of them";
    EXPECT_EQ(ended[0].finish, "cancelled");
    EXPECT_EQ(ended[0].error->code(), Code::resource_exhausted);
    for (std::uint64_t r = 1; r < n_seats; ++r)
        EXPECT_TRUE(events<DoneEvent>("holder", RequestId(r)).empty());
    expect_metric("pantheon_requests_ended_slow_total{reason=\"credit\"} 1");
    // Nobody waits any more: the others stay.
    for (int i = 0; i < 8; ++i) pass(250ms);
    EXPECT_EQ(snapshot()->n_parked, static_cast<int>(n_seats) - 1);
}

TEST_F(FlowTest, AStreamThatIsNotReadIsParkedThenEndsWithItsReasonAndIsCounted) {
    settings.limits.stall = 0ms;
    start();
    deliver("slow", RequestId("r"), greedy(long_talker('a')));
    deliver("quick", RequestId("q"), greedy(long_talker('b')));
    run_until([&] { return streamed("slow", RequestId("r")).size() == 5; });
    port->deliver(ClientBacklog{"slow", true});
    run();
    pass(500ms);
    const auto done = events<DoneEvent>("slow", RequestId("r"));
    ASSERT_EQ(done.size(), 1U);
    EXPECT_EQ(done[0].finish, "cancelled");
    EXPECT_EQ(done[0].error->code(), Code::resource_exhausted);
    EXPECT_NE(done[0].error->message().find("ipc.stall_ms"), std::string::npos);
    EXPECT_EQ(streamed("quick", RequestId("q")), expected(long_talker('b'))) << "others do not notice";
    expect_metric("pantheon_requests_ended_slow_total{reason=\"unread\"} 1");
    for (int i = 0; i < 3; ++i) pass(500ms);
    expect_metric("pantheon_requests_ended_slow_total{reason=\"unread\"} 1");
}

// ---- what is counted

TEST_F(FlowTest, EveryRequestIsCountedOnceByHowItFinished) {
    settings.limits.queue = 1;
    settings.engine.n_slots = 1;
    start();
    deliver("c", RequestId("length"), greedy(long_talker('a'), 4));
    run();
    GenerateRequest held = greedy(long_talker('a'));
    held.credit = 1;
    deliver("c", RequestId("cancelled"), held);
    run();
    deliver("c", RequestId("queued"), greedy(long_talker('b'), 3));
    deliver("c", RequestId("full"), greedy({'x'}));                    // refused by the scheduler
    deliver("c", RequestId("queued"), greedy({'x'}));                  // by the gateway
    deliver("c", RequestId("bad"), greedy({-1}));                      // by the text worker
    deliver("c", RequestId("text"), TokenizeRequest{"hello", false});  // no engine work
    run();
    deliver("c", RequestId("x"), CancelRequest{RequestId("cancelled")});
    run();
    deliver("c", RequestId("score"), ScoreRequest{{'a', 'b', 'c'}, 0});
    run();
    kill(wiring->slots[0]);  // idle: nobody's request
    run();
    control->nan_at_step = control->n_steps.load();
    deliver("c", RequestId("error"), greedy({'n'}));
    run();
    const std::string page = metrics();
    for (const char* line : {"finish=\"cancelled\"} 1", "finish=\"error\"} 1", "finish=\"length\"} 2",
                             "finish=\"refused\"} 3", "finish=\"stop\"} 1", "finish=\"deadline\"} 0"})
        EXPECT_NE(page.find(std::string("\npantheon_requests_total{") + line + "\n"), std::string::npos)
            << line << page;
    expect_metric("pantheon_step_rows_count " +
                  std::to_string(control->rows_per_step.size() - 2));  // without the canary
}

TEST_F(FlowTest, StatusAndMetricsSayTheLongestGapOfAStreamAndWhatWaitsNow) {
    start();
    deliver("c", RequestId("r"), greedy(long_talker('a')));
    run_until([&] { return streamed("c", RequestId("r")).size() == 5; });
    control->during_next_step = [] { std::this_thread::sleep_for(60ms); };
    run_until([&] { return streamed("c", RequestId("r")).size() == 8; });
    run();
    deliver("c", RequestId("s"), StatusRequest{});
    run();
    const Json engine = events<ResultEvent>("c", RequestId("s"))[0].value["engines"][0];
    EXPECT_GE(engine["longest_gap_ms"].get<std::int64_t>(), 60);
    EXPECT_EQ(engine["longest_gap_ms"], engine["longest_gap_last_minute_ms"]);
    EXPECT_NE(metrics().find("pantheon_longest_gap_seconds{window=\"start\"} 0."), std::string::npos);
}

TEST_F(FlowTest, WithoutASchedulerThereIsAStatusAndNoCounters) {
    start();
    kill(wiring->scheduler);
    deliver("observer", RequestId("s"), StatusRequest{});
    deliver("observer", RequestId("m"), MetricsRequest{});
    run();
    EXPECT_EQ(events<ResultEvent>("observer", RequestId("s")).at(0).value["state"], "degraded");
    EXPECT_EQ(events<ErrorEvent>("observer", RequestId("m")).at(0).error.code(), Code::unavailable);
    EXPECT_FALSE(metrics().empty()) << "there is a new one";
}

TEST_F(FlowTest, StatusAndMetricsAskedTogetherGetTheirOwnAnswers) {
    start();
    deliver("observer", RequestId("s"), StatusRequest{});
    deliver("observer", RequestId("m"), MetricsRequest{});
    run();
    EXPECT_TRUE(events<ResultEvent>("observer", RequestId("s")).at(0).value.contains("engines"));
    EXPECT_TRUE(events<ResultEvent>("observer", RequestId("m")).at(0).value.contains("text"))
        << "asked together";
}

}  // namespace
}  // namespace pantheon::actors

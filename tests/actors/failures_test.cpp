// Each last column of the table in actors/README.md: what happens when an actor dies.
#include "tests/actors/daemon_fixture.h"

namespace pantheon::actors {
namespace {

using namespace std::chrono_literals;

class FailureTest : public DaemonTest {
  protected:
    /// Three streams, one more request than that waiting, all in mid-flight.
    void begin_streams() {
        settings.engine.n_slots = 3;
        start();
        for (std::uint64_t r = 0; r < 4; ++r) deliver("c", RequestId(r), greedy(prompt(r)));
        run_until([&] { return streamed("c", RequestId(std::uint64_t{2})).size() == 5; });
    }
    std::vector<TokenId> prompt(std::uint64_t r) const { return long_talker(static_cast<TokenId>('a' + r)); }

    void expect_all_complete() {
        for (std::uint64_t r = 0; r < 4; ++r) {
            SCOPED_TRACE(r);
            EXPECT_EQ(streamed("c", RequestId(r)), expected(prompt(r)));
            EXPECT_EQ(events<DoneEvent>("c", RequestId(r)).size(), 1U);
            EXPECT_EQ(events<AcceptedEvent>("c", RequestId(r)).size(), 1U);
        }
    }
    void expect_serves_again() {
        deliver("c", RequestId("again"), greedy({'g'}));
        run();
        EXPECT_EQ(streamed("c", RequestId("again")), expected({'g'}));
    }
};

TEST_F(FailureTest, AKilledDieIsReplacedAndStreamsGoOnWithNothingLostOrRepeated) {
    begin_streams();
    kill(wiring->die);
    run();
    EXPECT_EQ(control->n_created, 2);
    expect_all_complete();
}

TEST_F(FailureTest, AnExceptionOfTheDeviceIsADeadDie) {
    control->throw_at_step = 14;
    begin_streams();
    run();
    EXPECT_EQ(control->n_created, 2);
    expect_all_complete();
}

TEST_F(FailureTest, AScoreJobSurvivesAReplacedDie) {
    control->throw_at_step = 3;
    start();
    std::vector<TokenId> tokens(100, 's');  // two steps
    deliver("c", RequestId("s"), ScoreRequest{tokens, 0});
    run();
    EXPECT_EQ(control->n_created, 2);
    ASSERT_EQ(events<ResultEvent>("c", RequestId("s")).size(), 1U);
    EXPECT_EQ(events<ResultEvent>("c", RequestId("s"))[0].value["logprobs"].size(), 100U);
}

TEST_F(FailureTest, LogitsThatAreNotFiniteEndOnlyTheirStreamWithAnError) {
    control->nan_at_step = 4;
    start();
    deliver("c", RequestId("r"), greedy(long_talker('a')));
    run();
    const auto done = events<DoneEvent>("c", RequestId("r"));
    ASSERT_EQ(done.size(), 1U);
    EXPECT_EQ(done[0].finish, "error");
    EXPECT_EQ(done[0].error->code(), Code::internal);
    expect_serves_again();
}

TEST_F(FailureTest, AKilledSlotEndsItsRequestWithAnErrorAndServesAgain) {
    begin_streams();
    kill(wiring->slots[1]);
    run();
    int n_failed = 0;
    for (std::uint64_t r = 0; r < 4; ++r) {
        const auto done = events<DoneEvent>("c", RequestId(r));
        ASSERT_EQ(done.size(), 1U);
        if (done[0].finish == "error") {
            ++n_failed;
            EXPECT_EQ(done[0].error->code(), Code::internal);
        } else {
            EXPECT_EQ(streamed("c", RequestId(r)), expected(prompt(r)));
        }
    }
    EXPECT_EQ(n_failed, 1);
    expect_serves_again();
}

TEST_F(FailureTest, AKilledSchedulerIsRebuiltFromTheSlotsAndTheGateway) {
    begin_streams();
    kill(wiring->scheduler);
    run();
    pass(1s);
    expect_all_complete();
    expect_serves_again();
}

TEST_F(FailureTest, CreditAndCancelSurviveAKilledScheduler) {
    settings.engine.n_slots = 1;
    start();
    GenerateRequest request = greedy(long_talker('a'));
    request.credit = 2;
    deliver("c", RequestId("r"), request);
    deliver("c", RequestId("g"), CreditRequest{RequestId("r"), 2});
    run();
    EXPECT_EQ(streamed("c", RequestId("r")).size(), 4U);
    kill(wiring->scheduler);
    run();
    deliver("c", RequestId("g"), CreditRequest{RequestId("r"), 1});
    run();
    EXPECT_EQ(streamed("c", RequestId("r")).size(), 5U);
    deliver("c", RequestId("x"), CancelRequest{RequestId("r")});
    run();
    EXPECT_EQ(events<DoneEvent>("c", RequestId("r"))[0].finish, "cancelled");
    expect_serves_again();
}

TEST_F(FailureTest, AKilledGatewayLeavesStreamsAloneAndItsSuccessorCanCancelThem) {
    begin_streams();
    kill(wiring->gateway);
    run_until([&] { return port->has_sink() && streamed("c", RequestId(std::uint64_t{2})).size() > 8; });
    deliver("c", RequestId("x"), CancelRequest{RequestId(std::uint64_t{2})});
    run();
    EXPECT_EQ(events<ResultEvent>("c", RequestId("x"))[0].value["cancelled"], true);
    EXPECT_EQ(events<DoneEvent>("c", RequestId(std::uint64_t{2}))[0].finish, "cancelled");
    for (const std::uint64_t r : {0, 1, 3}) {
        EXPECT_EQ(streamed("c", RequestId(r)), expected(prompt(r))) << r;
        EXPECT_EQ(events<DoneEvent>("c", RequestId(r)).size(), 1U) << r;
    }
    expect_serves_again();
}

TEST_F(FailureTest, AKilledTextWorkerFailsOnlyWhatItHeld) {
    begin_streams();
    kill(wiring->text);
    deliver("c", RequestId("held"), greedy({'h'}));
    run();
    expect_all_complete();
    const auto errors = events<ErrorEvent>("c", RequestId("held"));
    const auto done = events<DoneEvent>("c", RequestId("held"));
    EXPECT_EQ(errors.size() + done.size(), 1U);
    expect_serves_again();
}

TEST_F(FailureTest, SchedulerAndSlotKilledTogetherStillAnswerEveryRequestOnce) {
    begin_streams();
    kill(wiring->slots[0]);
    kill(wiring->scheduler);
    run();
    pass(1s);
    for (std::uint64_t r = 0; r < 4; ++r) EXPECT_EQ(events<DoneEvent>("c", RequestId(r)).size(), 1U) << r;
    expect_serves_again();
}

TEST_F(FailureTest, ADieThatCannotBeMadeAtTheStartFailsTheDaemon) {
    control->fail_create = true;
    start();
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code(), Code::unavailable);
    EXPECT_FALSE(is_ready);
}

TEST_F(FailureTest, AChildThatKeepsDyingEndsTheDaemon) {
    start();
    for (std::size_t i = 0; i <= RestartBudget::kMost && !failure; ++i) {
        kill(wiring->text);
        run();
    }
    ASSERT_TRUE(failure);
    EXPECT_NE(failure->message().find("text"), std::string::npos);
}

}  // namespace
}  // namespace pantheon::actors

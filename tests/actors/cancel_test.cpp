// Whose request a cancel means where several connections use the same ids.
#include <thread>

#include "actors/client_table.h"
#include "tests/actors/daemon_fixture.h"

namespace pantheon::actors {
namespace {

using CancelTest = DaemonTest;

TEST_F(CancelTest, ACancelThatComesTooLateDoesNotEndAnotherConnectionsRequest) {
    start();
    const RequestId first(std::uint64_t{1});
    deliver("early", first, greedy({'n'}, 2));
    run();
    ASSERT_EQ(events<DoneEvent>("early", first).size(), 1U);
    deliver("late", first, greedy(long_talker('a')));
    run_until([&] { return streamed("late", first).size() == 3; });
    deliver("early", RequestId("x"), CancelRequest{first});
    run();
    EXPECT_EQ(events<ResultEvent>("early", RequestId("x")).at(0).value["cancelled"], false);
    EXPECT_EQ(streamed("late", first), expected(long_talker('a')));
}

TEST_F(CancelTest, AConnectionsOwnRequestOfAnIdThatItUsesAgainIsMeant) {
    start();
    for (int round = 0; round < 2; ++round) {
        deliver("c", RequestId("r"), greedy(long_talker('a')));
        run_until([&] { return !streamed("c", RequestId("r")).empty(); });
        deliver("c", RequestId("x"), CancelRequest{RequestId("r")});
        run();
        EXPECT_EQ(events<ResultEvent>("c", RequestId("x")).back().value["cancelled"], true);
        EXPECT_EQ(events<DoneEvent>("c", RequestId("r")).back().finish, "cancelled");
    }
}

/// The die has a thread of its own here: these tests wait in real time.
class GivenUpStepTest : public DaemonTest {
  protected:
    void start_detached() {
        settings.engine.is_die_detached = true;
        launch();
        ASSERT_TRUE(wait_for([this] { return is_ready; }));
    }
    template <class Condition>
    bool wait_for(Condition condition) {
        const auto end_of_patience = Clock::now() + std::chrono::seconds(60);
        while (!condition() && Clock::now() < end_of_patience)
            if (!scheduler.try_run_once()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return condition();
    }
    bool is_done(const char* client) { return !events<DoneEvent>(client, RequestId("r")).empty(); }
    void stop() {
        caf::anon_send(root, Shutdown{});
        EXPECT_TRUE(wait_for([this] { return is_stopped; }));
        wiring.reset();
        root = SupervisorActor();
    }
};

TEST_F(GivenUpStepTest, ACancelEndsTheStepThatNobodyElseWants) {
    start_detached();
    control->hang_until_given_up = true;
    deliver("a", RequestId("r"), greedy({'a', 'b'}));
    ASSERT_TRUE(wait_for([this] { return control->is_hanging.load(); }));
    deliver("a", RequestId("x"), CancelRequest{RequestId("r")});
    ASSERT_TRUE(wait_for([this] { return is_done("a"); })) << "the step went on";
    EXPECT_EQ(events<DoneEvent>("a", RequestId("r")).at(0).finish, "cancelled");
    deliver("b", RequestId("r"), greedy({'c', 'd'}));
    ASSERT_TRUE(wait_for([this] { return is_done("b"); }));
    EXPECT_EQ(streamed("b", RequestId("r")), expected({'c', 'd'}));
    stop();
}

TEST_F(GivenUpStepTest, AStepThatSomebodyWantsGoesOn) {
    // The first stream waits for the second, and the step after one with both hangs.
    std::atomic<bool> is_second_there{false};
    control->during_each_step = [this, &is_second_there,
                                 n = 0](std::span<const model::StepRun> runs) mutable {
        if (runs.size() == 2 && n >= 0) {
            control->hang_until_given_up = true;
            n = -1;
        }
        if (n < 0 || ++n < 5) return;
        for (int ms = 0; ms < 20'000 && !is_second_there; ++ms)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
    };
    start_detached();
    deliver("b", RequestId("r"), greedy(long_talker('b')));
    EXPECT_TRUE(wait_for([this] { return !streamed("b", RequestId("r")).empty(); }));
    deliver("a", RequestId("r"), greedy(long_talker('a')));
    EXPECT_TRUE(wait_for([this] { return !events<AcceptedEvent>("a", RequestId("r")).empty(); }));
    is_second_there = true;
    EXPECT_TRUE(wait_for([this] { return control->is_hanging.load(); }));
    deliver("a", RequestId("x"), CancelRequest{RequestId("r")});
    EXPECT_TRUE(wait_for([this] { return !events<ResultEvent>("a", RequestId("x")).empty(); }));
    for (int i = 0; i < 50; ++i) {
        scheduler.run();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_TRUE(control->is_hanging) << "given up although b wants it";
    deliver("b", RequestId("x"), CancelRequest{RequestId("r")});
    EXPECT_TRUE(wait_for([this] { return is_done("a") && is_done("b"); }));
    stop();
}

Entry entry_of(std::uint64_t ticket, const RoutingId& client, std::uint64_t id) {
    auto job = std::make_shared<Job>();
    job->ticket = TicketId(ticket);
    job->reply = {nullptr, client, RequestId(id)};
    return {job, Entry::Phase::queued, {}, {}, 0};
}

TEST(ClientTableTest, RemembersTheLastIdsOfAConnectionUntilItEnds) {
    ClientTable table;
    for (std::uint64_t i = 1; i <= ClientTable::kRemembered + 1; ++i) {
        table.add(entry_of(i, "c", i));
        EXPECT_FALSE(table.has_ended("c", RequestId(i)));
        table.remove(TicketId(i));
        EXPECT_TRUE(table.has_ended("c", RequestId(i)));
    }
    EXPECT_FALSE(table.has_ended("c", RequestId(std::uint64_t{1}))) << "one too many";
    EXPECT_TRUE(table.has_ended("c", RequestId(std::uint64_t{2})));
    EXPECT_FALSE(table.has_ended("d", RequestId(std::uint64_t{2})));
    table.forget("c");
    EXPECT_FALSE(table.has_ended("c", RequestId(std::uint64_t{2})));
    EXPECT_EQ(table.n_clients(), 0U);
}

TEST(ClientTableTest, AConnectionThatEndsIsForgottenWithItsLastRequest) {
    ClientTable table;
    for (const std::uint64_t i : {1, 2}) table.add(entry_of(i, "c", i));
    table.remove(TicketId(1));
    table.forget("c");
    EXPECT_EQ(table.count_of("c"), 1U);
    EXPECT_EQ(table.n_clients(), 1U);
    table.remove(TicketId(2));
    EXPECT_EQ(table.n_clients(), 0U);
    table.forget("nobody");
    EXPECT_EQ(table.n_clients(), 0U);
}

}  // namespace
}  // namespace pantheon::actors

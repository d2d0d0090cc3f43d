// Whose request a cancel means where several connections use the same ids.
#include <utility>

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

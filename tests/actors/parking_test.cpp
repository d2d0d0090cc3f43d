#include "actors/parking.h"

#include <gtest/gtest.h>

#include <vector>

namespace pantheon::actors {
namespace {

using Kind = PlaceMove::Kind;

PlacedOrParked placed(int seat, int priority = 0, std::int64_t kv_bytes = 1) {
    return {
        SeatId(seat), TicketId(static_cast<std::uint64_t>(seat) + 100), priority, true, false, true, false,
        kv_bytes};
}
PlacedOrParked parked(int seat, int priority = 0, bool is_ready = true) {
    PlacedOrParked s = placed(seat, priority);
    s.is_placed = false;
    s.is_ready = is_ready;
    return s;
}
PlacedOrParked leaving(int seat, int priority = 0) {
    PlacedOrParked s = placed(seat, priority);
    s.is_leaving = true;
    return s;
}
PlacedOrParked unread(int seat) {
    PlacedOrParked s = placed(seat);
    s.is_ready = false;
    s.has_waited_long = true;
    return s;
}

struct Case {
    const char* name;
    std::vector<PlacedOrParked> sequences;
    std::optional<Waiting> waiting;
    PlaceLimits limits;
    Kind want = Kind::none;
    int seat = 0;
};

TEST(NextPlaceMoveTest, FollowsTheRules) {
    const Waiting usual{0, 1}, urgent{5, 1}, large{0, 8}, large_urgent{5, 8};
    const Case cases[] = {
        {"nothing under way, nothing waits", {}, {}, {2}, Kind::none},
        {"a free place is taken", {placed(0)}, usual, {2}, Kind::begin},
        {"no free place", {placed(0), placed(1)}, usual, {2}, Kind::none},
        {"equal priority parks nobody", {placed(0, 5)}, urgent, {1}, Kind::none},
        {"a higher priority parks the newest of the lowest",
         {placed(0, 1), placed(1), placed(2), placed(3, 2)},
         urgent,
         {4},
         Kind::park,
         2},
        {"nobody is parked for whom there is no seat", {placed(0)}, urgent, {1, false}, Kind::none},
        {"a place on its way is waited for", {leaving(0), placed(1)}, urgent, {2}, Kind::none},
        {"a parked sequence goes before a request", {parked(0)}, usual, {1}, Kind::resume, 0},
        {"unless the request is more urgent", {parked(0)}, urgent, {1}, Kind::begin},
        {"the older of two parked ones", {parked(1), parked(0)}, {}, {1}, Kind::resume, 0},
        {"the more urgent of two parked ones", {parked(0), parked(1, 3)}, {}, {1}, Kind::resume, 1},
        {"a parked one parks a lower one too", {parked(0, 3), placed(1)}, {}, {1}, Kind::park, 1},
        {"a parked one whose client does not read stays", {parked(0, 0, false)}, usual, {1}, Kind::begin},
        {"above the limit the newest of the lowest priority is parked",
         {placed(0, 1), placed(1), placed(2)},
         {},
         {2},
         Kind::park,
         2},
        {"those that leave anyway count", {placed(0), placed(1), leaving(2)}, {}, {2}, Kind::none},
        {"a place is not kept for a client that does not read", {unread(0)}, {}, {4}, Kind::park, 0},
        {"more KV than there may be", {placed(0, 0, 3), placed(1, 0, 3)}, {}, {2, true, 5}, Kind::park, 1},
        {"one sequence stays whatever it takes", {placed(0, 0, 9)}, {}, {2, true, 5}, Kind::none},
        {"a prompt that does not fit beside the others waits", {placed(0)}, large, {2, true, 8}, Kind::none},
        {"alone it begins", {}, large, {2, true, 5}, Kind::begin},
        {"an urgent one gets the room of another", {placed(0)}, large_urgent, {2, true, 8}, Kind::park, 0},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        const PlaceMove move = next_place_move(c.sequences, c.waiting, c.limits);
        EXPECT_EQ(move.kind, c.want);
        if (move.kind == Kind::park || move.kind == Kind::resume) {
            EXPECT_EQ(move.seat, SeatId(c.seat));
        }
    }
}

}  // namespace
}  // namespace pantheon::actors

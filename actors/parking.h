// Who has a place on the die and who waits with its state put aside. A pure function of what is under way,
// tested by table.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "runtime/base/ids.h"

namespace pantheon::actors {

/// A sequence under way, as far as its place is concerned.
struct PlacedOrParked {
    SeatId seat;
    TicketId ticket;  // lower: older
    std::int32_t priority = 0;
    bool is_placed = false;   // holds one of the die's slots
    bool is_leaving = false;  // and gives it up without being told: it has ended, or is parked after the step
    bool is_ready = true;     // parked: to go on; false: its client is not
    bool has_waited_long = false;  // placed, not ready, for longer than a place is kept free for it
    std::int64_t kv_bytes = 0;     // that it takes until its next token
};

/// The next request of the queue.
struct Waiting {
    std::int32_t priority = 0;
    std::int64_t kv_bytes = 0;  // of its prompt
};

struct PlaceLimits {
    int n_places = 0;
    bool has_free_seat = true;                                         // the waiting request can begin at all
    std::int64_t kv_bytes = std::numeric_limits<std::int64_t>::max();  // of all placed sequences together
};

struct PlaceMove {
    enum class Kind { none, park, resume, begin };
    Kind kind = Kind::none;
    SeatId seat;  // park, resume
};

/// One thing to do now; ask again after it was done. In this order:
///  - more places or KV taken than there may be: the newest of the lowest priority is parked, one
///    sequence always stays;
///  - a sequence that has waited long for its client is parked;
///  - a free place goes to the highest priority, a parked sequence before a request that has not begun, the
///    older before the newer;
///  - without one, whoever is of lower priority than the first that waits is parked, as above.
PlaceMove next_place_move(std::span<const PlacedOrParked> sequences, const std::optional<Waiting>& waiting,
                          const PlaceLimits& limits);

}  // namespace pantheon::actors

#include "actors/parking.h"

namespace pantheon::actors {
namespace {

using Kind = PlaceMove::Kind;

bool goes_before(const PlacedOrParked& a, const PlacedOrParked& b) {
    return a.priority != b.priority ? a.priority > b.priority : a.ticket < b.ticket;
}

struct Taken {
    int n_places = 0, n_staying = 0;
    std::int64_t kv_bytes = 0, staying_kv_bytes = 0;
};

Taken count(std::span<const PlacedOrParked> sequences) {
    Taken taken;
    for (const PlacedOrParked& s : sequences) {
        if (!s.is_placed) continue;
        ++taken.n_places;
        taken.kv_bytes += s.kv_bytes;
        if (s.is_leaving) continue;
        ++taken.n_staying;
        taken.staying_kv_bytes += s.kv_bytes;
    }
    return taken;
}

/// Of those that hold a place and keep it: the newest of the lowest priority.
const PlacedOrParked* last_placed(std::span<const PlacedOrParked> sequences) {
    const PlacedOrParked* last = nullptr;
    for (const PlacedOrParked& s : sequences)
        if (s.is_placed && !s.is_leaving && (!last || goes_before(*last, s))) last = &s;
    return last;
}

const PlacedOrParked* first_parked(std::span<const PlacedOrParked> sequences) {
    const PlacedOrParked* first = nullptr;
    for (const PlacedOrParked& s : sequences)
        if (!s.is_placed && !s.is_leaving && s.is_ready && (!first || goes_before(s, *first))) first = &s;
    return first;
}

}  // namespace

PlaceMove next_place_move(std::span<const PlacedOrParked> sequences, const std::optional<Waiting>& waiting,
                          const PlaceLimits& limits) {
    const Taken taken = count(sequences);
    const PlacedOrParked* last = last_placed(sequences);
    if (last && taken.n_staying > limits.n_places) return {Kind::park, last->seat};
    if (last && taken.n_staying > 1 && taken.staying_kv_bytes > limits.kv_bytes)
        return {Kind::park, last->seat};
    for (const PlacedOrParked& s : sequences)
        if (s.is_placed && !s.is_leaving && s.has_waited_long) return {Kind::park, s.seat};

    const PlacedOrParked* parked = first_parked(sequences);
    const bool is_waiting = waiting && limits.has_free_seat;
    if (!parked && !is_waiting) return {};
    const bool takes_parked = parked && !(is_waiting && waiting->priority > parked->priority);
    const std::int32_t priority = takes_parked ? parked->priority : waiting->priority;
    const std::int64_t kv_bytes = takes_parked ? parked->kv_bytes : waiting->kv_bytes;

    const auto fits = [&](std::int64_t n_places_taken, std::int64_t kv_bytes_taken) {
        return n_places_taken < limits.n_places &&
               (n_places_taken == 0 || kv_bytes <= limits.kv_bytes - kv_bytes_taken);
    };
    if (fits(taken.n_places, taken.kv_bytes))
        return takes_parked ? PlaceMove{Kind::resume, parked->seat} : PlaceMove{Kind::begin, {}};
    // Room that is on its way need not be made again.
    if (fits(taken.n_staying, taken.staying_kv_bytes)) return {};
    if (last && last->priority < priority) return {Kind::park, last->seat};
    return {};
}

}  // namespace pantheon::actors

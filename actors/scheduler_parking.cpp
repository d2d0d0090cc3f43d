// The scheduler's side of places on the die: who gets one, who is put aside and goes on later from the same
// state. What is done next is decided in parking.h.
#include <algorithm>

#include "actors/scheduler.h"

namespace pantheon::actors {
namespace {

constexpr int kTicksThatAPlaceWaits = 4;  // a second: so long is a place kept for a client that does not read

}  // namespace

std::vector<PlacedOrParked> SchedulerState::places() const {
    std::vector<PlacedOrParked> list;
    for (std::size_t i = 0; i < seats.size(); ++i) {
        if (!seats[i]) continue;
        const RunningSequence& sequence = *seats[i];
        PlacedOrParked item;
        item.seat = SeatId(static_cast<std::int32_t>(i));
        item.ticket = sequence.job->ticket;
        item.priority = sequence.job->prepared->priority;
        item.is_placed = sequence.place.has_value();
        item.is_leaving = sequence.is_ended || sequence.end_after_step || sequence.is_park_due;
        item.is_ready = !sequence.is_held_back();
        item.has_waited_long =
            sequence.n_waiting_ticks >= kTicksThatAPlaceWaits && sequence.waits_for_client();
        item.kv_bytes = kv_bytes(sequence);
        list.push_back(item);
    }
    return list;
}

std::optional<SlotId> SchedulerState::free_place() const {
    int n_taken = 0;
    std::optional<SlotId> free;
    for (int i = 0; i < settings->engine.n_slots; ++i) {
        if (find_placed(SlotId(i))) {
            ++n_taken;
        } else if (!free) {
            free = SlotId(i);
        }
    }
    return n_taken < slot_limit ? free : std::nullopt;
}

std::optional<std::size_t> SchedulerState::free_seat() const {
    const auto free = std::find_if(seats.begin(), seats.end(), [](const auto& s) { return !s; });
    if (free == seats.end()) return std::nullopt;
    return static_cast<std::size_t>(free - seats.begin());
}

void SchedulerState::set_slot_limit(const SetSlotLimit& message) {
    slot_limit = std::clamp(message.n, 1, most_places());
    slot_limit_reason = message.reason;
    dispatch();
}

void SchedulerState::give_places() {
    while (true) {
        PlaceLimits limits;
        limits.n_places = n_hold_ticks > 0 ? 0 : slot_limit;
        limits.has_free_seat = free_seat().has_value();
        limits.kv_bytes = kv_limit();
        std::optional<Waiting> waiting;
        if (const Job* job = queue.front())
            waiting = Waiting{job->prepared->priority, kv_bytes(*job->prepared)};
        const PlaceMove move = next_place_move(places(), waiting, limits);
        const auto index = static_cast<std::size_t>(move.seat.value);
        switch (move.kind) {
            case PlaceMove::Kind::none:
                return;
            case PlaceMove::Kind::park:
                if (may_park(*seats[index])) {
                    park(index);
                } else {
                    seats[index]->is_park_due = true;
                }
                break;
            case PlaceMove::Kind::resume:
                resume(index, *free_place());
                break;
            case PlaceMove::Kind::begin:
                begin(*free_seat(), *free_place(), queue.pop());
                break;
        }
    }
}

/// What the sequence is now stays with the die under a name of its own, in f32 whatever sessions.f16 says,
/// within the prefix cache's budget.
/// Where that has no room the sequence is evaluated again from its tokens later: slower, with the same
/// result.
void SchedulerState::park(std::size_t index) {
    RunningSequence& sequence = *seats[index];
    sequence.n_waiting_ticks = 0;
    if (sequence.is_started && !sequence.begun && sequence.n_fed > 0 && has_die() &&
        is_keepable(sequence.n_fed) && cache.reserve(sequence.n_fed, PrefixCache::Arrival::parked)) {
        send_drops();
        sequence.is_room_reserved = true;
        sequence.n_reserved = sequence.n_fed;
        sequence.parked_as = CheckpointId(kParkedNames | next_parked++);
        self->send(wiring->die, KeepState{*sequence.place, sequence.parked_as, /*is_exact=*/true});
    } else {
        sequence.n_fed = 0;
    }
    if (sequence.is_started && has_die()) self->send(wiring->die, ReleaseSlot{*sequence.place});
    sequence.is_started = false;
    sequence.begun.reset();
    sequence.place.reset();
    update_gap_clock(sequence);
    ++n_ever_parked;
    if (std::exchange(sequence.was_parked, true)) return;
    self->send(wiring->slots[index], SequenceParked{sequence.job->ticket});
}

/// Amid a run in parts there is no state to keep, so that its end is awaited, unless the others need the room
/// now.
bool SchedulerState::may_park(const RunningSequence& sequence) const {
    return !sequence.is_in_flight && (!sequence.begun || kv_bytes_placed() > kv_limit());
}

/// Those that were to be parked while a step with rows of them was under way.
void SchedulerState::park_after_step() {
    for (std::size_t i = 0; i < seats.size(); ++i) {
        if (!seats[i] || !may_park(*seats[i]) || !std::exchange(seats[i]->is_park_due, false)) continue;
        if (!seats[i]->is_ended) park(i);
    }
}

void SchedulerState::resume(std::size_t index, SlotId place) {
    RunningSequence& sequence = *seats[index];
    sequence.place = place;
    update_gap_clock(sequence);
    if (sequence.parked_as == CheckpointId())
        return convert_running();  // starts from its tokens when its turn comes
    const Prepared& prepared = *sequence.job->prepared;
    BindSlot bind{place, prepared.sampling, prepared.n_top, sequence.parked_as, {}};
    const auto window = static_cast<std::int64_t>(model::kPenaltyWindow);
    bind.recent = sequence.tokens(std::max<std::int64_t>(0, sequence.n_fed - window), sequence.n_fed);
    self->send(wiring->die, std::move(bind));
    sequence.is_started = true;
    sequence.resumed_from = CheckpointId();
    forget_parked_state(sequence);
    convert_running();
}

/// A pause counts while the sequence has a place, its first token is out and its client takes the next.
void SchedulerState::update_gap_clock(RunningSequence& sequence) {
    if (!sequence.place || sequence.is_held_back() || sequence.generated.empty()) {
        sequence.gap_clock.stop();
    } else if (!sequence.gap_clock.is_running()) {
        sequence.gap_clock.start(Clock::now());
    }
}

void SchedulerState::forget_parked_state(RunningSequence& sequence) {
    if (std::exchange(sequence.is_room_reserved, false))
        cache.unreserve(sequence.n_reserved, PrefixCache::Arrival::parked);
    const CheckpointId state = std::exchange(sequence.parked_as, CheckpointId());
    if (state != CheckpointId() && has_die()) self->send(wiring->die, DropCheckpoints{{state}, false});
}

void SchedulerState::count_waiting_ticks() {
    for (auto& sequence : seats) {
        if (!sequence) continue;
        const bool lacks_credit = sequence->is_held_back() && !sequence->is_paused;
        sequence->n_ticks_without_credit = lacks_credit ? sequence->n_ticks_without_credit + 1 : 0;
        if (!sequence->place) continue;
        sequence->n_waiting_ticks = sequence->waits_for_client() ? sequence->n_waiting_ticks + 1 : 0;
    }
}

/// A stream may wait for credit as long as it likes, unless so many do that nobody else can begin: then the
/// one that has waited longest ends, once it has waited for ipc.stall_ms. (Streams that are not read end in
/// any case, which the gateway sees to.)
void SchedulerState::free_a_seat() {
    if (queue.is_empty() || free_seat()) return;
    const auto longest = std::max_element(seats.begin(), seats.end(), [](const auto& a, const auto& b) {
        return a->n_ticks_without_credit < b->n_ticks_without_credit;
    });
    RunningSequence& sequence = **longest;
    if (sequence.is_ended || sequence.end_after_step) return;  // one is on its way
    if (sequence.n_ticks_without_credit * kTick < std::max(settings->limits.stall, kTick)) return;
    ++n_ended_without_credit;
    cancel({sequence.job->ticket, "cancelled",
            Error(Code::resource_exhausted, "no credit for ipc.stall_ms (" +
                                                std::to_string(settings->limits.stall.count()) +
                                                " ms), and other requests wait for its place")});
}

}  // namespace pantheon::actors

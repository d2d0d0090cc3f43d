// The scheduler's side of the KV pool: what sequences take of it, what is done when the die has no room for a
// step, and who keeps KV in q4_0 because memory is short.
#include <algorithm>
#include <limits>

#include "actors/kv_pool.h"
#include "actors/scheduler.h"

namespace pantheon::actors {
namespace {

constexpr int kFirstHoldTicks = 4;  // a second
constexpr int kMostDoublings = 5;

}  // namespace

std::int64_t SchedulerState::kv_bytes(bool is_q4_0, std::int64_t n_rows, std::int64_t n_step) const {
    const EngineSettings& engine = settings->engine;
    const model::CheckpointSizes& sizes = is_q4_0 && engine.in_q4_0 ? *engine.in_q4_0 : engine.checkpoint;
    return static_cast<std::int64_t>(
        kv_bytes_needed(sizes, settings->limits, n_rows, std::clamp<std::int64_t>(n_step, 1, kMaxChunk)));
}

std::int64_t SchedulerState::kv_bytes(const RunningSequence& sequence) const {
    return kv_bytes(sequence.is_q4_0, sequence.n_known(), sequence.n_known() - sequence.n_fed);
}

std::int64_t SchedulerState::kv_bytes(const Prepared& waiting) const {
    const auto n_prompt = static_cast<std::int64_t>(waiting.prompt.size());
    const bool is_score = waiting.kind == Prepared::Kind::score;
    return kv_bytes(orders.admits_as_q4_0 && !is_score, n_prompt, n_prompt);
}

std::int64_t SchedulerState::kv_limit() const {
    std::int64_t limit = std::numeric_limits<std::int64_t>::max();
    if (settings->engine.kv_pool_bytes > 0) limit = static_cast<std::int64_t>(settings->engine.kv_pool_bytes);
    return std::min(limit, kv_ceiling.value_or(limit));
}

/// No more than the pool can hold if each has a token.
int SchedulerState::most_places() const {
    const EngineSettings& engine = settings->engine;
    const std::int64_t least = kv_bytes(false, 1, 1);
    if (engine.kv_pool_bytes == 0 || least == 0) return engine.n_slots;
    const auto n = static_cast<std::int64_t>(engine.kv_pool_bytes) / least;
    return static_cast<int>(std::clamp<std::int64_t>(n, 1, engine.n_slots));
}

std::int64_t SchedulerState::kv_bytes_placed() const {
    std::int64_t taken = 0;
    for (const auto& sequence : seats)
        if (sequence && sequence->place) taken += kv_bytes(*sequence);
    return taken;
}

/// What a sequence that is over still holds is about to be free: the next step needs it.
bool SchedulerState::waits_for_room() const {
    const bool is_one_leaving =
        std::any_of(seats.begin(), seats.end(), [](const auto& s) { return s && s->place && s->is_ended; });
    return is_one_leaving && kv_bytes_placed() > kv_limit();
}

/// A step has come back undone because there was no room on the die, whatever the accounts here say: those
/// that have a place must take less than they do, so one of them is parked or, if one is over, waited for. A
/// sequence that is alone waits without a place and tries again now and then; whatever can be done without
/// goes first.
void SchedulerState::on_exhausted() {
    const auto n_placed =
        std::count_if(seats.begin(), seats.end(), [](const auto& s) { return s && s->place; });
    if (n_placed == 0) return;
    log_warning(name, "no room on the die for the next step of " + std::to_string(n_placed) + " sequences");
    if (n_placed > 1) {
        kv_ceiling = kv_bytes_placed() - 1;
        return;
    }
    drop_parked_states();
    cache.set_ceiling(0);
    send_drops();
    squeeze_cache();
    if (has_die()) self->send(wiring->die, TrimMemory{});
    n_hold_ticks = kFirstHoldTicks << std::min(n_exhausted_alone++, kMostDoublings);
}

void SchedulerState::end_hold() {
    kv_ceiling.reset();
    n_hold_ticks = 0;
}

/// Rung 4. The numbers of a score job are its result, and it could not say what they come from.
void SchedulerState::keep_in_q4_0(std::size_t index) {
    RunningSequence& sequence = *seats[index];
    if (!settings->engine.in_q4_0 || sequence.is_q4_0 || sequence.is_score() || sequence.is_ended) return;
    sequence.is_q4_0 = true;
    self->send(wiring->slots[index], SequenceInQ4_0{sequence.job->ticket});
    if (sequence.place && sequence.is_started && has_die())
        self->send(wiring->die, KeepInQ4_0{*sequence.place});
}

/// Rung 4b. Rows in f16 that q4_0 keeps beside make short sequences larger: these stay as they are.
void SchedulerState::convert_running() {
    if (!orders.converts_to_q4_0 || !settings->engine.in_q4_0) return;
    for (std::size_t i = 0; i < seats.size(); ++i) {
        // Amid a run KV cannot be rewritten; once it is done this is asked again.
        if (!seats[i] || !seats[i]->place || seats[i]->is_park_due || seats[i]->is_amid_run()) continue;
        const std::int64_t n = seats[i]->n_known();
        if (settings->engine.in_q4_0->kv_bytes(n) < settings->engine.checkpoint.kv_bytes(n)) keep_in_q4_0(i);
    }
}

}  // namespace pantheon::actors

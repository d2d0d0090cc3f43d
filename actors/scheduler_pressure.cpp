// What the scheduler does when memory is short: it carries out the orders of the memory ladder. Nothing here
// ends a request that was accepted.
#include <algorithm>
#include <utility>

#include "actors/scheduler.h"

namespace pantheon::actors {

void SchedulerState::on_orders(const MemoryOrders& next) {
    const MemoryOrders before = std::exchange(orders, next);
    if (orders.rung > before.rung)
        memory_counters.n_rungs_up += static_cast<std::uint64_t>(orders.rung - before.rung);
    if (orders.rung < before.rung)
        memory_counters.n_rungs_down += static_cast<std::uint64_t>(before.rung - orders.rung);
    if (!wiring) return;
    squeeze_cache();
    if (!orders.is_admission_open) drop_parked_states();
    // Rung 2: what is above the limit is parked.
    slot_limit = std::min(orders.slot_limit.value_or(most_places()), most_places());
    slot_limit_reason = slot_limit < most_places()              ? "memory"
                        : slot_limit < settings->engine.n_slots ? "kv.pool_bytes"
                                                                : "configured";
    squeeze_die(before);
    if (orders.rung > before.rung) {
        if (has_die()) self->send(wiring->die, TrimMemory{});
        for (std::size_t i = 0; i < seats.size(); ++i)
            if (seats[i]) tell_rung(*seats[i], i);
    }
    if (!is_recovering()) give_places();  // who is to be parked keeps what it has
    convert_running();
    dispatch();
}

/// Rung 1. The bound is measured from what the cache held when it had to stop growing, so that repeated
/// orders do not shrink it again and again.
void SchedulerState::squeeze_cache() {
    if (orders.cache_may_grow) {
        cache_held_bytes.reset();
        cache.set_ceiling(std::nullopt);
        return;
    }
    const std::uint64_t before = cache.bytes();
    if (!cache_held_bytes) cache_held_bytes = before;
    // While it is only TIGHT what can be written is written before it goes.
    cache.set_ceiling(static_cast<std::uint64_t>(static_cast<double>(*cache_held_bytes) * orders.cache_keep),
                      orders.level == MemoryLevel::tight);
    memory_counters.cache_bytes_dropped += before - std::min(before, cache.bytes());
    send_drops();
    spill_some();
}

/// Rung 5. A stream that waits without its state is evaluated again from its tokens: slow, but nothing is
/// lost.
void SchedulerState::drop_parked_states() {
    for (auto& sequence : seats) {
        if (!sequence || sequence->parked_as == CheckpointId()) continue;
        forget_parked_state(*sequence);
        sequence->n_fed = 0;
    }
}

/// Rung 3. A die starts with packed weights: `before` is what it knows.
void SchedulerState::squeeze_die(const MemoryOrders& before) {
    if (!has_die() || before.keeps_packed == orders.keeps_packed) return;
    if (settings->engine.repack == model::Repack::none) return;
    if (!orders.keeps_packed) ++memory_counters.n_unpacked;
    self->send(wiring->die, KeepPacked{orders.keeps_packed});
}

/// Rung 5.
bool SchedulerState::refuse_for_memory(const JobPtr& job) {
    if (orders.is_admission_open || job->is_resubmitted) return false;
    ++memory_counters.n_refused;
    self->send(wiring->gateway, TicketFinished{job->ticket, "refused"});
    job->reply.send(ErrorEvent{
        Error(Code::resource_exhausted,
              "memory is " + std::string(level_name(orders.level)) + ": no new requests for a while"),
        orders.retry_after.count()});
    return true;
}

void SchedulerState::tell_rung(const RunningSequence& sequence, std::size_t index) {
    if (orders.rung > 0) self->send(wiring->slots[index], MemoryRung{sequence.job->ticket, orders.rung});
}

void SchedulerState::add_memory(EngineSnapshot& snapshot) const {
    snapshot.memory_level = orders.level;
    snapshot.memory_rung = orders.rung;
    snapshot.memory_counters = memory_counters;
}

}  // namespace pantheon::actors

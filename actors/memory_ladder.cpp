#include "actors/memory_ladder.h"

#include <string>

namespace pantheon::actors {
namespace {

void log_change(const MemoryOrders& orders) {
    std::string text = std::string(level_name(orders.level)) + ", rung " + std::to_string(orders.rung);
    if (!orders.reason.empty()) text += ": " + orders.reason;
    if (orders.level == MemoryLevel::ok) {
        log_info(MemoryLadderState::name, text);
    } else {
        log_warning(MemoryLadderState::name, text);
    }
}

}  // namespace

void MemoryLadderState::on_readings(const MemoryReadings& readings) {
    ladder = next_state(ladder, readings, settings->memory.ladder, settings->engine.packed_bytes);
    MemoryOrders next = orders_of(ladder, settings->memory.ladder);
    const bool is_at_rest = next == orders_of(LadderState::fresh(), settings->memory.ladder);
    rest_until->store(is_at_rest ? std::make_shared<const LadderSettings>(settings->memory.ladder) : nullptr);
    if (orders == next) return;
    const bool is_news = orders ? orders->rung != next.rung || orders->level != next.level : next.rung > 0;
    if (is_news) log_change(next);
    orders = std::move(next);
    self->send(wiring->scheduler, *orders);
}

/// A scheduler that has just been started knows of no orders; one that goes on keeps those of a ladder that
/// died until the next one has readings.
void MemoryLadderState::on_wiring(const WiringPtr& next) {
    const WiringPtr previous = wiring;
    wiring = next;
    if (previous && previous->scheduler != wiring->scheduler && orders)
        self->send(wiring->scheduler, *orders);
    if (previous || !settings->memory.source) return;
    settings->memory.source->set_sink([address = UpHandle<MemoryLadderActor>(MemoryLadderActor(self)),
                                       rest_until = rest_until](MemoryReadings readings) {
        const auto threshold = rest_until->load();
        if (threshold && level_asked_for(readings, *threshold) == MemoryLevel::ok) return;
        if (auto ladder = address.lock())
            caf::anon_send(ladder, std::make_shared<const MemoryReadings>(std::move(readings)));
    });
}

MemoryLadderActor::behavior_type memory_ladder(MemoryLadderActor::stateful_pointer<MemoryLadderState> self,
                                               SettingsPtr settings, bool is_restart) {
    install_handlers(self);
    self->state.self = self;
    self->state.settings = std::move(settings);
    self->state.ladder = is_restart ? LadderState() : LadderState::fresh();
    return {
        [self](const MemoryReadingsPtr& readings) { self->state.on_readings(*readings); },
        [self](const WiringPtr& wiring) { self->state.on_wiring(wiring); },
        [self](const SettingsPtr& next) {
            self->state.settings = next;
            self->state.rest_until->store(nullptr);
        },
    };
}

}  // namespace pantheon::actors

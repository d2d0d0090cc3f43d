#include "actors/supervisor.h"

#include "actors/config_watcher.h"
#include "actors/die.h"
#include "actors/gateway.h"
#include "actors/memory_ladder.h"
#include "actors/scheduler.h"
#include "actors/slot.h"
#include "actors/state_store.h"
#include "actors/text_worker.h"

namespace pantheon::actors {
namespace {

constexpr std::chrono::milliseconds kDrainPoll{50};
constexpr std::chrono::seconds kDrainGrace{2};  // for cancelled requests to end
constexpr std::chrono::seconds kReloadTimeout{60};
constexpr std::chrono::seconds kSpillAtTheEnd{10};  // writing what memory holds; a stop has a limit outside
constexpr std::chrono::seconds kSpillGrace{5};      // for the write under way then

template <class Handle>
bool is_same(const Handle& handle, const caf::actor_addr& address) {
    return handle && caf::actor_cast<caf::actor_addr>(handle) == address;
}

}  // namespace

bool RestartBudget::allow(Clock::time_point now) {
    deaths_.push_back(now);
    while (now - deaths_.front() > kWindow) deaths_.pop_front();
    return deaths_.size() <= kMost;
}

template <class F, class... Args>
auto SupervisorState::spawn_child(F behavior, Args&&... args) {
    ++n_alive;
    return self->spawn<caf::monitored>(behavior, std::forward<Args>(args)...);
}

void SupervisorState::spawn_gateway(bool is_restart) {
    children.gateway = spawn_child(gateway, settings, port, started, is_restart);
    if (is_draining) self->send(children.gateway, BeginDrain{std::chrono::milliseconds(0)});
}

void SupervisorState::spawn_scheduler(bool is_restart) {
    children.scheduler = spawn_child(scheduler, settings, is_restart);
}

void SupervisorState::spawn_slot(std::size_t index) {
    children.slots[index] = spawn_child(slot, SeatId(static_cast<std::int32_t>(index)), settings);
}

void SupervisorState::spawn_die() {
    const UpHandle<SupervisorActor> up{SupervisorActor(self)};
    if (settings->engine.is_die_detached) {
        ++n_alive;
        starting_die = self->spawn<caf::detached + caf::monitored>(die, settings, up);
    } else {
        starting_die = spawn_child(die, settings, up);
    }
}

void SupervisorState::spawn_config() {
    if (settings->engine.is_die_detached) {
        ++n_alive;
        config = self->spawn<caf::detached + caf::monitored>(config_watcher, settings);
    } else {
        config = spawn_child(config_watcher, settings);
    }
}

void SupervisorState::spawn_store() {
    if (settings->engine.is_die_detached) {
        ++n_alive;
        children.store = self->spawn<caf::detached + caf::monitored>(state_store, settings);
    } else {
        children.store = spawn_child(state_store, settings);
    }
}

void SupervisorState::spawn_memory_ladder(bool is_restart) {
    children.memory_ladder = spawn_child(memory_ladder, settings, is_restart);
}

void SupervisorState::start() {
    started = Clock::now();
    children.supervisor = SupervisorActor(self);
    children.slots.resize(static_cast<std::size_t>(settings->engine.n_seats()));
    spawn_store();
    spawn_scheduler(false);
    for (std::size_t i = 0; i < children.slots.size(); ++i) spawn_slot(i);
    children.text = spawn_child(text_worker, settings);
    spawn_gateway(false);
    spawn_memory_ladder(false);
    spawn_config();
    publish();
    spawn_die();
    if (events.on_alive && events.alive_interval.count() > 0)
        self->delayed_send(self, events.alive_interval, AliveTick{});
}

/// Scheduler first: whoever hears of it later can already rely on its knowing the others.
void SupervisorState::publish() {
    const auto wiring = std::make_shared<const Wiring>(children);
    self->send(wiring->scheduler, WiringPtr(wiring));
    for (const SlotActor& slot : wiring->slots) self->send(slot, WiringPtr(wiring));
    self->send(wiring->text, WiringPtr(wiring));
    self->send(wiring->gateway, WiringPtr(wiring));
    self->send(wiring->memory_ladder, WiringPtr(wiring));
    if (events.on_wiring) events.on_wiring(wiring);
}

void SupervisorState::on_die_ready(const DieReady& message, const caf::actor_addr& sender) {
    if (is_stopping || !is_same(starting_die, sender)) return;
    if (message.error) {
        // At the start a die that cannot be made is final; later the restart budget decides, in on_down().
        if (!is_ready) fail(*message.error);
        return;
    }
    children.die = starting_die;
    starting_die = DieActor();
    ++children.die_generation;
    publish();
    if (!is_ready) {
        is_ready = true;
        if (events.on_ready) events.on_ready();
    }
}

void SupervisorState::on_down(const caf::down_msg& down) {
    --n_alive;
    if (is_stopping) return finish_if_all_gone();

    std::string who;
    if (is_same(children.gateway, down.source)) who = "gateway";
    if (is_same(children.text, down.source)) who = "text";
    if (is_same(children.scheduler, down.source)) who = "scheduler";
    if (is_same(config, down.source)) who = "config watcher";
    if (is_same(children.store, down.source)) who = "store";
    if (is_same(children.memory_ladder, down.source)) who = "memory ladder";
    if (is_same(children.die, down.source) || is_same(starting_die, down.source)) who = "die";
    std::size_t slot_index = 0;
    for (std::size_t i = 0; i < children.slots.size(); ++i)
        if (is_same(children.slots[i], down.source)) {
            who = "slot " + std::to_string(i);
            slot_index = i;
        }
    if (who.empty()) return;

    log_error(name, who + " has died (" + caf::to_string(down.reason) + "), replacing it");
    if (!budgets[who].allow(Clock::now()))
        return fail(Error(Code::internal, who + " died more than " + std::to_string(RestartBudget::kMost) +
                                              " times in " + std::to_string(RestartBudget::kWindow.count()) +
                                              " s"));
    if (who == "gateway") {
        port->set_sink({});
        spawn_gateway(true);
    } else if (who == "text") {
        children.text = spawn_child(text_worker, settings);
    } else if (who == "scheduler") {
        spawn_scheduler(true);
    } else if (who == "config watcher") {
        spawn_config();
    } else if (who == "store") {
        spawn_store();
    } else if (who == "memory ladder") {
        spawn_memory_ladder(true);
    } else if (who == "die") {
        children.die = DieActor();
        spawn_die();
    } else {
        spawn_slot(slot_index);
    }
    publish();
}

// ---- settings, signs of life
// ------------------------------------------------------------------------------------------------

caf::result<ReloadOutcomePtr> SupervisorState::reload(const ReloadConfig& message) {
    auto promise = self->make_response_promise<ReloadOutcomePtr>();
    const bool is_announced = is_ready && !is_draining && !message.is_dry_run;
    if (is_announced && events.on_reloading) events.on_reloading();
    auto finish = [this, promise, is_announced](ReloadOutcomePtr outcome) mutable {
        if (outcome->settings) adopt(outcome->settings);
        if (is_announced && !is_stopping && events.on_reloaded) events.on_reloaded(*settings);
        promise.deliver(std::move(outcome));
    };
    self->request(config, kReloadTimeout, message)
        .then([finish](ReloadOutcomePtr outcome) mutable { finish(std::move(outcome)); },
              [finish](const caf::error&) mutable {
                  ReloadOutcome failed;
                  failed.error = Error(Code::internal, "reload: the configuration could not be read");
                  finish(std::make_shared<const ReloadOutcome>(std::move(failed)));
              });
    return promise;
}

void SupervisorState::adopt(const SettingsPtr& next) {
    settings = next;
    if (is_stopping) return;
    self->send(children.scheduler, SettingsPtr(next));
    self->send(children.text, SettingsPtr(next));
    self->send(children.gateway, SettingsPtr(next));
    self->send(children.memory_ladder, SettingsPtr(next));
}

void SupervisorState::alive_tick() {
    if (is_stopping) return;
    self->delayed_send(self, events.alive_interval, AliveTick{});
    self->request(children.scheduler, events.alive_interval, GetSnapshot{})
        .then(
            [this](const SnapshotPtr& snapshot) {
                if (!snapshot->is_step_hanging) events.on_alive(*snapshot);
            },
            [](const caf::error&) { log_error(name, "the scheduler does not answer"); });
}

// ---- the end
// ------------------------------------------------------------------------------------------------------

void SupervisorState::begin_drain(std::optional<std::chrono::milliseconds> timeout) {
    if (is_draining || is_stopping) return;
    is_draining = true;
    drain_end = Clock::now() + timeout.value_or(settings->limits.drain) + kDrainGrace;
    self->send(children.gateway, BeginDrain{timeout});
    drain_tick();
}

void SupervisorState::drain_tick() {
    if (is_stopping) return;
    if (Clock::now() >= *drain_end) return stop();
    const auto again = [this] { self->delayed_send(self, kDrainPoll, DrainTick{}); };
    self->request(children.gateway, std::chrono::seconds(1), CountLive{})
        .then(
            [this, again](std::uint64_t n_live) {
                if (n_live == 0) return spill_and_stop();
                again();
            },
            [again](const caf::error&) { again(); });
}

/// Nothing runs any more: what the prefix cache holds in memory alone is written, so that the next process
/// finds it.
void SupervisorState::spill_and_stop() {
    self->request(children.scheduler, kSpillAtTheEnd + kSpillGrace, SpillAll{kSpillAtTheEnd})
        .then(
            [this](std::uint64_t n_written) {
                if (n_written > 0) log_info(name, std::to_string(n_written) + " checkpoints written to disk");
                stop();
            },
            [this](const caf::error&) { stop(); });
}

void SupervisorState::fail(Error error) {
    if (is_stopping) return;
    failure = std::move(error);
    stop();
}

void SupervisorState::stop() {
    if (is_stopping) return;
    is_stopping = true;
    port->set_sink({});
    if (settings->memory.source) settings->memory.source->set_sink({});
    const auto end = [this](const auto& handle) {
        if (handle) self->send_exit(handle, caf::exit_reason::user_shutdown);
    };
    end(children.gateway);
    end(children.text);
    end(config);
    end(children.store);
    end(children.memory_ladder);
    end(children.scheduler);
    for (const SlotActor& slot : children.slots) end(slot);
    end(children.die);
    end(starting_die);
    finish_if_all_gone();
}

void SupervisorState::finish_if_all_gone() {
    if (n_alive > 0) return;
    children = Wiring();
    config = ConfigActor();
    starting_die = DieActor();
    if (failure) {
        if (events.on_failed) events.on_failed(*failure);
    } else if (events.on_stopped) {
        events.on_stopped();
    }
    self->quit();
}

SupervisorActor::behavior_type supervisor(SupervisorActor::stateful_pointer<SupervisorState> self,
                                          SettingsPtr settings, std::shared_ptr<ClientPort> port,
                                          SupervisorEvents events) {
    install_handlers(self);
    SupervisorState& state = self->state;
    state.self = self;
    state.settings = std::move(settings);
    state.port = std::move(port);
    state.events = std::move(events);
    self->set_down_handler([self](caf::down_msg& down) { self->state.on_down(down); });
    state.start();
    return {
        [self](const DieReady& message) {
            self->state.on_die_ready(message, caf::actor_cast<caf::actor_addr>(self->current_sender()));
        },
        [self](const WeightsPacked& message) {
            if (!self->state.is_stopping) self->send(self->state.children.scheduler, message);
        },
        [self](const Shutdown&) { self->state.stop(); },
        [self](const BeginDrain& message) { self->state.begin_drain(message.timeout); },
        [self](const DrainTick&) { self->state.drain_tick(); },
        [self](const AliveTick&) { self->state.alive_tick(); },
        [self](const ReloadConfig& message) { return self->state.reload(message); },
    };
}

}  // namespace pantheon::actors

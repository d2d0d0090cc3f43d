#include "actors/gateway.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

#include "actors/status_report.h"

namespace pantheon::actors {
namespace {

constexpr std::chrono::milliseconds kTick{500};          // only while something waits for time to pass
constexpr std::chrono::seconds kReloadTimeout{70};       // longer than the supervisor waits
constexpr std::chrono::milliseconds kStatusTimeout{40};  // status answers within 50 ms whatever runs
constexpr std::chrono::seconds kSessionTimeout{200};     // to and from disk, behind a step under way

/// Tickets stay unique when a gateway is replaced.
TicketId next_ticket() {
    static std::atomic<std::uint64_t> counter{1};
    return TicketId(counter.fetch_add(1, std::memory_order_relaxed));
}

std::int64_t age_ms(Clock::time_point then) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - then).count();
}

std::string id_text(const RequestId& id) {
    if (const auto* text = std::get_if<std::string>(&id)) return "\"" + *text + "\"";
    return std::to_string(std::get<std::uint64_t>(id));
}

std::string_view phase_name(Entry::Phase phase) {
    switch (phase) {
        case Entry::Phase::preparing:
            return "preparing";
        case Entry::Phase::queued:
            return "queued";
        case Entry::Phase::bound:
            break;
    }
    return "running";
}

Error admins_only(std::string_view op) {
    return {Code::permission_denied, std::string(op) + ": for administrators only"};
}

bool is_engine_work(const Request& request) {
    return std::holds_alternative<GenerateRequest>(request) || std::holds_alternative<ScoreRequest>(request);
}

}  // namespace

// ---- from the socket
// --------------------------------------------------------------------------------------------

void GatewayState::on_port_event(const PortEvent& event) {
    if (const auto* inbound = std::get_if<Inbound>(&event)) return on_inbound(*inbound);
    if (const auto* backlog = std::get_if<ClientBacklog>(&event)) return on_backlog(*backlog);
    const RoutingId& client = std::get<ClientGone>(event).client;
    stalled.erase(client);
    for (Entry* entry : table.of_client(client)) cancel_entry(*entry, "cancelled", std::nullopt);
    table.forget(client);
}

void GatewayState::on_inbound(const Inbound& inbound) {
    std::visit([&](const auto& request) { serve(inbound, request); }, inbound.request);
}

void GatewayState::serve(const Inbound& inbound, const CancelRequest& request) {
    cancel(inbound, request);
}
void GatewayState::serve(const Inbound& inbound, const CreditRequest& request) {
    add_credit(inbound, request);
}
void GatewayState::serve(const Inbound& inbound, const StatusRequest&) {
    send_status(inbound);
}
void GatewayState::serve(const Inbound& inbound, const PingRequest&) {
    port->send(inbound.client, inbound.id, ResultEvent{Json::object()});
}
void GatewayState::serve(const Inbound& inbound, const MetricsRequest&) {
    ask_for_snapshot({inbound, {}});
}
void GatewayState::serve(const Inbound& inbound, const SessionRequest& request) {
    // Whether the states exist is known where they are planned, to the scheduler.
    auto command = std::make_shared<SessionCommand>();
    *command = {inbound.who, is_admin(inbound.who), request};
    self->request(wiring->scheduler, kSessionTimeout, SessionCommandPtr(std::move(command)))
        .then(
            [this, client = inbound.client, id = inbound.id](const SessionAnswer& answer) {
                if (!*answer) return port->send(client, id, ErrorEvent{answer->error(), {}});
                port->send(client, id, ResultEvent{**answer});
            },
            [this, client = inbound.client, id = inbound.id](const caf::error&) {
                port->send(client, id,
                           ErrorEvent{Error(Code::unavailable, "the scheduler does not answer"), {}});
            });
}
void GatewayState::serve(const Inbound& inbound, const ReloadRequest& request) {
    if (!is_admin(inbound.who)) return send_error(inbound, admins_only("reload"));
    // The supervisor answers after it has handed the new settings round: what this client asks next meets
    // them.
    self->request(wiring->supervisor, kReloadTimeout, ReloadConfig{request.dry_run})
        .then(
            [this, client = inbound.client, id = inbound.id](const ReloadOutcomePtr& outcome) {
                if (outcome->error) return port->send(client, id, ErrorEvent{*outcome->error, {}});
                port->send(client, id, ResultEvent{reload_report(*outcome)});
            },
            [this, client = inbound.client, id = inbound.id](const caf::error&) {
                port->send(client, id,
                           ErrorEvent{Error(Code::unavailable, "reload: no answer; see the log"), {}});
            });
}
void GatewayState::serve(const Inbound& inbound, const DrainRequest& request) {
    if (!is_admin(inbound.who)) return send_error(inbound, admins_only("drain"));
    std::optional<std::chrono::milliseconds> timeout;
    if (request.timeout_s) timeout = std::chrono::milliseconds(std::llround(1000 * *request.timeout_s));
    begin_drain(timeout);
    port->send(inbound.client, inbound.id, ResultEvent{Json{{"running", table.size()}}});
}

void GatewayState::submit(const Inbound& inbound) {
    const auto refuse = [&](Error error) {
        if (is_engine_work(inbound.request)) ++counters.by_finish["refused"];
        send_error(inbound, std::move(error));
    };
    if (is_engine_work(inbound.request) && is_draining)
        return refuse(Error(Code::unavailable, "the daemon is draining: it takes no new requests"));
    if (table.count_of(inbound.client) >= settings->limits.per_client)
        return refuse(Error(Code::resource_exhausted, "this connection has " +
                                                          std::to_string(settings->limits.per_client) +
                                                          " live requests, the most it may have"));
    auto job = std::make_shared<Job>();
    job->ticket = next_ticket();
    job->reply = {port, inbound.client, inbound.id};
    job->who = inbound.who;
    job->received = Clock::now();
    job->request = std::make_shared<const Request>(inbound.request);
    job->in_flight = inbound.in_flight;
    if (!table.add({job, Entry::Phase::preparing, {}, {}, 0}))
        return refuse(Error(Code::invalid_argument, "id: " + id_text(inbound.id) +
                                                        " is in use by a live request of this connection"));
    self->send(wiring->text, JobPtr(std::move(job)));
}

void GatewayState::cancel(const Inbound& inbound, const CancelRequest& request) {
    Entry* entry = table.find(inbound.client, request.target);
    // A cancel that comes too late for the connection's own request must not end another's of that id: many
    // clients count from 1.
    if (!entry && !table.has_ended(inbound.client, request.target)) {
        // Another connection of the same user, for example `pantheon cancel`.
        const auto found = table.find(inbound.who, request.target);
        if (found.size() > 1)
            return send_error(
                inbound, Error(Code::failed_precondition, "target: " + std::to_string(found.size()) +
                                                              " connections have a live request of this id"));
        if (found.size() == 1) entry = found.front();
    }
    if (entry) cancel_entry(*entry, "cancelled", std::nullopt);
    port->send(inbound.client, inbound.id, ResultEvent{Json{{"cancelled", entry != nullptr}}});
}

void GatewayState::add_credit(const Inbound& inbound, const CreditRequest& request) {
    // No answer, by contract: credit for a request that has just ended is normal.
    Entry* entry = table.find(inbound.client, request.target);
    if (!entry || request.n <= 0) return;
    constexpr std::int64_t kMost = std::int64_t{1} << 40;
    const std::int64_t n = std::min(request.n, kMost - entry->n_credit);
    entry->n_credit += n;
    send_to_holder(*entry, AddCredit{entry->job->ticket, n});
}

void GatewayState::on_backlog(const ClientBacklog& backlog) {
    if (backlog.is_stalled) {
        stalled.emplace(backlog.client, Clock::now());
        arm_tick();
    } else {
        stalled.erase(backlog.client);
    }
    // What is not in a slot yet is paused when it gets there, on_bound().
    for (Entry* entry : table.of_client(backlog.client))
        if (entry->phase == Entry::Phase::bound)
            self->send(wiring->scheduler, PauseTicket{entry->job->ticket, backlog.is_stalled});
}

void GatewayState::send_error(const Inbound& inbound, Error error) {
    port->send(inbound.client, inbound.id, ErrorEvent{std::move(error), {}});
}

bool GatewayState::is_admin(const Identity& who) const {
    if (!who.curve_key.empty()) return false;
    const auto& listed = settings->limits.admin_uids;
    return who.uid == 0 || who.uid == ::geteuid() ||
           std::find(listed.begin(), listed.end(), who.uid) != listed.end();
}

void GatewayState::send_status(const Inbound& inbound) {
    std::vector<RequestSummary> own;
    for (Entry* entry : table.all())
        if (entry->job->who.uid == inbound.who.uid && entry->job->who.curve_key == inbound.who.curve_key)
            own.push_back(
                {entry->job->reply.id, std::string(phase_name(entry->phase)), age_ms(entry->job->received)});
    ask_for_snapshot({inbound, std::move(own)});
}

void GatewayState::ask_for_snapshot(StatusWaiter waiter) {
    status_waiters.push_back(std::move(waiter));
    if (status_waiters.size() > 1) return;  // one snapshot answers all who ask meanwhile
    self->request(wiring->scheduler, kStatusTimeout, GetSnapshot{})
        .then([this](const SnapshotPtr& snapshot) { answer_status(*snapshot); },
              [this](const caf::error&) {
                  // The scheduler is being replaced: say what is known without it. Counters are not.
                  std::erase_if(status_waiters, [this](const StatusWaiter& who) {
                      if (!std::holds_alternative<MetricsRequest>(who.inbound.request)) return false;
                      send_error(who.inbound, Error(Code::unavailable, "the scheduler does not answer"));
                      return true;
                  });
                  EngineSnapshot unknown;
                  unknown.state = "degraded";
                  unknown.n_slots = settings->engine.n_slots;
                  unknown.queue_limit = settings->limits.queue;
                  answer_status(unknown);
              });
}

void GatewayState::answer_status(const EngineSnapshot& engine) {
    const auto uptime = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - daemon_started);
    for (const StatusWaiter& waiter : std::exchange(status_waiters, {})) {
        const bool is_metrics = std::holds_alternative<MetricsRequest>(waiter.inbound.request);
        port->send(waiter.inbound.client, waiter.inbound.id,
                   ResultEvent{is_metrics ? Json{{"text", metrics_text(*settings, engine, counters, uptime)}}
                                          : status_report(*settings, engine, is_draining, uptime.count(),
                                                          waiter.own)});
    }
}

// ---- tickets
// ----------------------------------------------------------------------------------------------------

template <class Message>
void GatewayState::send_to_holder(const Entry& entry, Message message) {
    if (entry.phase == Entry::Phase::preparing) {
        self->send(wiring->text, std::move(message));
    } else {
        self->send(wiring->scheduler, std::move(message));
    }
}

void GatewayState::cancel_entry(Entry& entry, std::string finish, std::optional<Error> error) {
    if (!entry.cancel) entry.cancel = CancelTicket{entry.job->ticket, std::move(finish), std::move(error)};
    send_to_holder(entry, *entry.cancel);
}

void GatewayState::on_admitted(const JobPtr& job) {
    Entry* entry = table.find(job->ticket);
    if (!entry) return;
    entry->job = job;
    if (entry->phase == Entry::Phase::preparing) entry->phase = Entry::Phase::queued;
}

void GatewayState::on_bound(const TicketBound& message) {
    Entry* entry = table.find(message.ticket);
    if (!entry) return;
    entry->phase = Entry::Phase::bound;
    entry->seat = message.seat;
    if (stalled.contains(entry->job->reply.client)) send_to_holder(*entry, PauseTicket{message.ticket, true});
}

void GatewayState::on_finished(const TicketFinished& message) {
    const Entry* entry = table.find(message.ticket);
    if (!entry) return;
    // What is not prepared is still as it was asked.
    if (entry->job->prepared || is_engine_work(*entry->job->request)) ++counters.by_finish[message.finish];
    table.remove(message.ticket);
}

/// Ends a request whose holder is gone.
void GatewayState::fail_entry(const JobPtr& job, const Error& error) {
    // Only a request that was accepted gets a done; the text worker accepts nothing, score has no accepted.
    const Entry* entry = table.find(job->ticket);
    const bool was_accepted =
        entry && entry->phase != Entry::Phase::preparing && job->prepared->kind == Prepared::Kind::generate;
    if (was_accepted) {
        DoneEvent done;
        done.finish = "error";
        done.error = error;
        job->reply.send(std::move(done));
    } else {
        job->reply.send(ErrorEvent{error, {}});
    }
    ++counters.by_finish[was_accepted ? "error" : "refused"];
    table.remove(job->ticket);
}

// ---- replaced parts
// -----------------------------------------------------------------------------------------------

void GatewayState::on_wiring(const WiringPtr& next) {
    const WiringPtr previous = wiring;
    wiring = next;
    if (!previous) {
        if (is_restart) return adopt_tickets();
        return listen();
    }
    if (previous->text != wiring->text) {
        for (Entry* entry : table.all())
            if (entry->phase == Entry::Phase::preparing)
                fail_entry(entry->job,
                           Error(Code::internal, "the text worker failed on this or an earlier request"));
    }
    if (previous->scheduler != wiring->scheduler) {
        // Slots report what they hold to the new scheduler; what was still waiting is known here only.
        for (Entry* entry : table.all()) {
            if (entry->phase == Entry::Phase::preparing) continue;
            if (entry->n_credit > 0)
                self->send(wiring->scheduler, AddCredit{entry->job->ticket, entry->n_credit});
            if (entry->phase == Entry::Phase::queued) {
                auto again = std::make_shared<Job>(*entry->job);
                again->is_resubmitted = true;
                self->send(wiring->scheduler, JobPtr(std::move(again)));
            }
            if (stalled.contains(entry->job->reply.client))
                self->send(wiring->scheduler, PauseTicket{entry->job->ticket, true});
            if (entry->cancel) self->send(wiring->scheduler, *entry->cancel);
        }
    }
    if (previous->scheduler != wiring->scheduler || previous->slots != wiring->slots) {
        is_reconcile_due = true;
        arm_tick();
    }
}

/// From here on the socket's messages arrive. The port keeps no strong handle: it outlives us.
void GatewayState::listen() {
    port->set_sink([address = UpHandle<GatewayActor>(GatewayActor(self))](PortEvent event) {
        if (auto gateway = address.lock())
            caf::anon_send(gateway, PortEventPtr(std::make_shared<const PortEvent>(std::move(event))));
    });
}

/// The table of a gateway that failed, rebuilt from what the scheduler holds.
void GatewayState::adopt_tickets() {
    self->request(wiring->scheduler, std::chrono::seconds(2), ListTickets{})
        .then(
            [this](const TicketListPtr& list) {
                for (const auto& [job, is_bound] : list->jobs)
                    table.add({job, is_bound ? Entry::Phase::bound : Entry::Phase::queued, {}, {}, 0});
                listen();
            },
            [this](const caf::error&) { listen(); });
}

/// After a failure of scheduler or slots: whatever we believe to run and the scheduler does not know is
/// ended.
void GatewayState::reconcile() {
    self->request(wiring->scheduler, std::chrono::seconds(2), ListTickets{})
        .then(
            [this](const TicketListPtr& list) {
                for (Entry* entry : table.all()) {
                    if (entry->phase != Entry::Phase::bound) continue;
                    const auto same = [&](const auto& item) {
                        return item.first->ticket == entry->job->ticket;
                    };
                    if (std::none_of(list->jobs.begin(), list->jobs.end(), same))
                        fail_entry(entry->job, Error(Code::internal, "the slot of this request failed"));
                }
            },
            [this](const caf::error&) {
                is_reconcile_due = true;
                arm_tick();
            });
}

// ---- time
// -------------------------------------------------------------------------------------------------------

void GatewayState::begin_drain(std::optional<std::chrono::milliseconds> timeout) {
    is_draining = true;
    drain_deadline = Clock::now() + timeout.value_or(settings->limits.drain);
    log_info(name,
             "draining: " + std::to_string(table.size()) + " live requests may finish, new ones are refused");
    arm_tick();
}

void GatewayState::arm_tick() {
    if (is_tick_pending) return;
    is_tick_pending = true;
    self->delayed_send(self, kTick, Tick{});
}

void GatewayState::tick() {
    is_tick_pending = false;
    if (is_reconcile_due) {
        is_reconcile_due = false;
        reconcile();
    }
    const Clock::time_point now = Clock::now();
    for (auto& [client, since] : stalled) {
        if (now - since < settings->limits.stall) continue;
        for (Entry* entry : table.of_client(client)) {
            if (!entry->cancel) ++counters.n_ended_unread;
            cancel_entry(
                *entry, "cancelled",
                Error(Code::resource_exhausted, "the client has not read for ipc.stall_ms (" +
                                                    std::to_string(settings->limits.stall.count()) + " ms)"));
        }
    }
    if (drain_deadline && now >= *drain_deadline) {
        drain_deadline.reset();
        for (Entry* entry : table.all())
            cancel_entry(*entry, "cancelled", Error(Code::unavailable, "the daemon is stopping"));
    }
    if (!stalled.empty() || drain_deadline || is_reconcile_due) arm_tick();
}

GatewayActor::behavior_type gateway(GatewayActor::stateful_pointer<GatewayState> self, SettingsPtr settings,
                                    std::shared_ptr<ClientPort> port, Clock::time_point daemon_started,
                                    bool is_restart) {
    install_handlers(self);
    GatewayState& state = self->state;
    state.self = self;
    state.settings = std::move(settings);
    state.port = std::move(port);
    state.daemon_started = daemon_started;
    state.is_restart = is_restart;
    return {
        [self](const PortEventPtr& event) { self->state.on_port_event(*event); },
        [self](const WiringPtr& wiring) { self->state.on_wiring(wiring); },
        [self](const TicketAdmitted& message) { self->state.on_admitted(message.job); },
        [self](const TicketBound& message) { self->state.on_bound(message); },
        [self](const TicketFinished& message) { self->state.on_finished(message); },
        [self](const BeginDrain& message) { self->state.begin_drain(message.timeout); },
        [self](const Tick&) { self->state.tick(); },
        [self](const SettingsPtr& next) { self->state.settings = next; },
        [self](const CountLive&) -> std::uint64_t { return self->state.table.size(); },
    };
}

}  // namespace pantheon::actors

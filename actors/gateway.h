// The actor between the client socket and the engine: client table, cancels, credit, backlog, status.
#pragma once

#include <unordered_map>

#include "actors/client_table.h"
#include "actors/messages.h"
#include "actors/metrics/metrics_text.h"
#include "actors/status_report.h"

namespace pantheon::actors {

struct GatewayState {
    static inline const char* name = "gateway";

    GatewayActor::pointer self = nullptr;
    SettingsPtr settings;
    std::shared_ptr<ClientPort> port;
    Clock::time_point daemon_started;
    WiringPtr wiring;
    ClientTable table;
    std::unordered_map<RoutingId, Clock::time_point> stalled;  // clients that do not read, since when
    /// Somebody who has asked for `status` or `metrics`.
    struct StatusWaiter {
        Inbound inbound;
        std::vector<RequestSummary> own;
    };
    std::vector<StatusWaiter> status_waiters;  // a snapshot for them is on its way
    RequestCounters counters;
    bool is_draining = false;
    std::optional<Clock::time_point> drain_deadline;
    bool is_tick_pending = false;
    bool is_reconcile_due = false;
    bool is_restart = false;  // a predecessor failed: its tickets are asked for before the socket is heard

    void on_port_event(const PortEvent& event);
    void on_wiring(const WiringPtr& next);
    void on_admitted(const JobPtr& job);
    void on_bound(const TicketBound& message);
    void on_finished(const TicketFinished& message);
    void begin_drain(std::optional<std::chrono::milliseconds> timeout);
    void tick();

  private:
    void on_inbound(const Inbound& inbound);
    void serve(const Inbound& inbound, const CancelRequest& request);
    void serve(const Inbound& inbound, const CreditRequest& request);
    void serve(const Inbound& inbound, const StatusRequest& request);
    void serve(const Inbound& inbound, const PingRequest& request);
    void serve(const Inbound& inbound, const MetricsRequest& request);
    void serve(const Inbound& inbound, const SessionRequest& request);
    void serve(const Inbound& inbound, const ReloadRequest& request);
    void serve(const Inbound& inbound, const DrainRequest& request);
    /// generate, score, tokenize, detokenize, template
    template <class TextRequest>
    void serve(const Inbound& inbound, const TextRequest&) {
        submit(inbound);
    }
    void on_backlog(const ClientBacklog& backlog);
    void submit(const Inbound& inbound);
    void cancel(const Inbound& inbound, const CancelRequest& request);
    void add_credit(const Inbound& inbound, const CreditRequest& request);
    void send_status(const Inbound& inbound);
    void ask_for_snapshot(StatusWaiter waiter);
    void answer_status(const EngineSnapshot& engine);
    void send_error(const Inbound& inbound, Error error);
    void cancel_entry(Entry& entry, std::string finish, std::optional<Error> error);
    void fail_entry(const JobPtr& job, const Error& error);
    bool is_admin(const Identity& who) const;
    /// Messages about a ticket go to whoever holds it: the text worker until it was admitted, then the
    /// scheduler.
    template <class Message>
    void send_to_holder(const Entry& entry, Message message);
    void adopt_tickets();
    void listen();
    void reconcile();
    void arm_tick();
};

/// daemon_started: for uptime, across restarts of this actor. is_restart: ask the scheduler for its tickets
/// first.
GatewayActor::behavior_type gateway(GatewayActor::stateful_pointer<GatewayState> self, SettingsPtr settings,
                                    std::shared_ptr<ClientPort> port, Clock::time_point daemon_started,
                                    bool is_restart);

}  // namespace pantheon::actors

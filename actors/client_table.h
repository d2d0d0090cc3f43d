// Which connection asked for what: the gateway's table of live requests, as a plain data structure.
#pragma once

#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "actors/messages.h"

namespace pantheon::actors {

struct Entry {
    enum class Phase { preparing, queued, bound };
    JobPtr job;
    Phase phase = Phase::preparing;
    std::optional<SeatId> seat;
    std::optional<CancelTicket> cancel;  // asked for, not carried out yet
    std::int64_t n_credit = 0;           // granted since the request
};

class ClientTable {
  public:
    /// False when this connection already has a live request of that id.
    bool add(Entry entry);
    void remove(TicketId ticket);
    Entry* find(TicketId ticket);
    /// The connection's own request of that id.
    Entry* find(const RoutingId& client, const RequestId& id);
    /// Requests of that id by the same identity on any connection.
    std::vector<Entry*> find(const Identity& who, const RequestId& id);
    std::vector<Entry*> of_client(const RoutingId& client);
    std::size_t count_of(const RoutingId& client) const;
    /// Whether the connection had a request of that id that has ended, of its last kRemembered ones: what it
    /// says of the id is not about anybody else's request.
    bool has_ended(const RoutingId& client, const RequestId& id) const;
    static constexpr std::size_t kRemembered = 256;
    /// The connection has ended: it is forgotten once its last request is removed.
    void forget(const RoutingId& client);
    std::size_t n_clients() const { return clients_.size(); }  // that are not forgotten
    std::vector<Entry*> all();
    std::size_t size() const { return entries_.size(); }

  private:
    struct Client {
        std::vector<TicketId> live;
        std::deque<RequestId> ended;  // the latest last
        bool is_gone = false;
    };
    std::unordered_map<TicketId, Entry> entries_;
    std::unordered_map<RoutingId, Client> clients_;
};

}  // namespace pantheon::actors

// Which connection asked for what: the gateway's table of live requests, as a plain data structure.
#pragma once

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
    std::vector<Entry*> all();
    std::size_t size() const { return entries_.size(); }

  private:
    std::unordered_map<TicketId, Entry> entries_;
    std::unordered_map<RoutingId, std::vector<TicketId>> by_client_;
};

}  // namespace pantheon::actors

#include "actors/client_table.h"

namespace pantheon::actors {

bool ClientTable::add(Entry entry) {
    const Respondent& reply = entry.job->reply;
    if (find(reply.client, reply.id)) return false;
    const TicketId ticket = entry.job->ticket;
    by_client_[reply.client].push_back(ticket);
    entries_.emplace(ticket, std::move(entry));
    return true;
}

void ClientTable::remove(TicketId ticket) {
    const auto found = entries_.find(ticket);
    if (found == entries_.end()) return;
    const auto client = by_client_.find(found->second.job->reply.client);
    std::erase(client->second, ticket);
    if (client->second.empty()) by_client_.erase(client);
    entries_.erase(found);
}

Entry* ClientTable::find(TicketId ticket) {
    const auto found = entries_.find(ticket);
    return found == entries_.end() ? nullptr : &found->second;
}

Entry* ClientTable::find(const RoutingId& client, const RequestId& id) {
    for (Entry* entry : of_client(client))
        if (entry->job->reply.id == id) return entry;
    return nullptr;
}

std::vector<Entry*> ClientTable::find(const Identity& who, const RequestId& id) {
    std::vector<Entry*> found;
    for (auto& [ticket, entry] : entries_) {
        const Identity& owner = entry.job->who;
        if (owner.uid == who.uid && owner.curve_key == who.curve_key && entry.job->reply.id == id)
            found.push_back(&entry);
    }
    return found;
}

std::vector<Entry*> ClientTable::of_client(const RoutingId& client) {
    std::vector<Entry*> result;
    const auto found = by_client_.find(client);
    if (found == by_client_.end()) return result;
    for (const TicketId ticket : found->second) result.push_back(&entries_.at(ticket));
    return result;
}

std::size_t ClientTable::count_of(const RoutingId& client) const {
    const auto found = by_client_.find(client);
    return found == by_client_.end() ? 0 : found->second.size();
}

std::vector<Entry*> ClientTable::all() {
    std::vector<Entry*> result;
    for (auto& [ticket, entry] : entries_) result.push_back(&entry);
    return result;
}

}  // namespace pantheon::actors

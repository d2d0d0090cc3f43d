#include "actors/client_table.h"

#include <algorithm>

namespace pantheon::actors {

bool ClientTable::add(Entry entry) {
    const Respondent& reply = entry.job->reply;
    if (find(reply.client, reply.id)) return false;
    const TicketId ticket = entry.job->ticket;
    clients_[reply.client].live.push_back(ticket);
    entries_.emplace(ticket, std::move(entry));
    return true;
}

void ClientTable::remove(TicketId ticket) {
    const auto found = entries_.find(ticket);
    if (found == entries_.end()) return;
    const Respondent& reply = found->second.job->reply;
    const auto at = clients_.find(reply.client);
    Client& client = at->second;
    std::erase(client.live, ticket);
    if (client.is_gone && client.live.empty()) {
        clients_.erase(at);
    } else {
        client.ended.push_back(reply.id);
        if (client.ended.size() > kRemembered) client.ended.pop_front();
    }
    entries_.erase(found);
}

void ClientTable::forget(const RoutingId& client) {
    const auto found = clients_.find(client);
    if (found == clients_.end()) return;
    found->second.is_gone = true;
    if (found->second.live.empty()) clients_.erase(found);
}

bool ClientTable::has_ended(const RoutingId& client, const RequestId& id) const {
    const auto found = clients_.find(client);
    if (found == clients_.end()) return false;
    const auto& ended = found->second.ended;
    return std::find(ended.begin(), ended.end(), id) != ended.end();
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
    const auto found = clients_.find(client);
    if (found == clients_.end()) return result;
    for (const TicketId ticket : found->second.live) result.push_back(&entries_.at(ticket));
    return result;
}

std::size_t ClientTable::count_of(const RoutingId& client) const {
    const auto found = clients_.find(client);
    return found == clients_.end() ? 0 : found->second.live.size();
}

std::vector<Entry*> ClientTable::all() {
    std::vector<Entry*> result;
    for (auto& [ticket, entry] : entries_) result.push_back(&entry);
    return result;
}

}  // namespace pantheon::actors

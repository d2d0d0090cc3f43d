#include "ipc/router_worker.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "ipc/codec.h"
#include "runtime/base/log.h"

namespace pantheon::ipc {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// One turn reads at most this much, so that a flood of requests does not keep replies waiting.
constexpr int kMaxBatchMessages = 256;
constexpr std::size_t kMaxBatchBytes = 8u << 20;
// Requests held back while there is no sink.
constexpr std::size_t kMaxHeld = 256;
constexpr std::size_t kMaxHeldBytes = 32u << 20;
constexpr std::int64_t kRetryAfterMs = 1'000;
// ROUTER gives no sign when a full queue has room again: try soon, then ever less often while nothing moves.
constexpr milliseconds kFirstRetry{1};
constexpr milliseconds kLastRetry{20};

RoutingId routing_id_of(std::uint64_t serial) {
    RoutingId id(sizeof serial, '\0');
    std::memcpy(id.data(), &serial, sizeof serial);
    return id;
}

std::uint64_t serial_of(const RoutingId& id) {
    std::uint64_t serial = 0;
    if (id.size() == sizeof serial) std::memcpy(&serial, id.data(), sizeof serial);
    return serial;
}

}  // namespace

RouterWorker::RouterWorker(RouterShared& shared, RouterSocket& socket)
    : shared_(shared), socket_(socket), retry_(kFirstRetry) {}

void RouterWorker::run() {
    while (!shared_.is_stopping.load()) {
        const bool is_full = in_flight_.is_full();
        const milliseconds timeout = is_full                  ? kFirstRetry
                                     : n_waiting_clients_ > 0 ? retry_
                                                              : milliseconds(-1);
        socket_.wait(shared_.outbox.fd(), timeout, /*takes_messages=*/!is_full);
        shared_.add(RouterCount::wakeups);
        turn();
    }
    const auto deadline = Clock::now() + shared_.config.linger;
    take_outbox();
    flush_waiting();
    while (n_waiting_clients_ > 0 && Clock::now() < deadline) {
        std::this_thread::sleep_for(kFirstRetry);
        flush_waiting();
    }
}

void RouterWorker::turn() {
    try {
        take_outbox();
        flush_waiting();
        forget(socket_.take_disconnected());
        deliver_held();
        receive_batch();
    } catch (const std::exception& error) {
        // Memory ran out in the middle of a turn. What it worked on is lost, the socket and its clients
        // are not.
        log_error("ipc", error.what());
    }
}

// ---- to clients

void RouterWorker::take_outbox() {
    shared_.outbox.take(batch_);
    for (Outgoing& out : batch_) {
        const auto at = connections_.find(serial_of(out.client));
        if (at == connections_.end()) {
            shared_.add(RouterCount::discarded);
            continue;
        }
        if (!out.is_final && at->second.has_delimiter) continue;  // a REQ client gets exactly one reply
        deliver(at->second, std::move(out.frame));
    }
    batch_.clear();
}

/// May remove the connection.
void RouterWorker::deliver(Connection& to, std::string frame) {
    if (to.is_cut) {
        shared_.add(RouterCount::discarded);
        return;
    }
    if (to.unread.empty()) {
        const auto sent = socket_.send(to.zmq_id, to.has_delimiter, frame);
        if (sent == RouterSocket::Sent::yes) {
            shared_.add(RouterCount::sent);
            return;
        }
        if (sent == RouterSocket::Sent::peer_is_gone) {
            shared_.add(RouterCount::discarded);
            remove(to.serial);
            return;
        }
        ++n_waiting_clients_;
        retry_ = kFirstRetry;
    }
    switch (to.unread.push(std::move(frame))) {
        case UnreadChange::stalled:
            tell_backlog(to, true);
            break;
        case UnreadChange::overrun:
            cut(to);
            break;
        case UnreadChange::none:
        case UnreadChange::resumed:
            break;
    }
}

void RouterWorker::cut(Connection& to) {
    log_warning("ipc", "uid " + std::to_string(to.who.uid) + " pid " + std::to_string(to.who.pid) +
                           " keeps asking without reading: its replies are discarded");
    shared_.add(RouterCount::cut);
    shared_.add(RouterCount::discarded, to.unread.size() + 1);
    to.is_cut = true;
    to.unread.clear();
    drop_held(to.serial);
    (void)to.unread.push(
        encode_event(std::nullopt, ErrorEvent{Error(Code::resource_exhausted,
                                                    "too many unread replies: all requests of this "
                                                    "connection were cancelled"),
                                              std::nullopt}));
    tell_gone(to);
}

void RouterWorker::flush_waiting() {
    if (n_waiting_clients_ == 0) return;
    bool has_moved = false;
    std::vector<std::uint64_t> gone, readers;
    for (auto& [serial, connection] : connections_) {
        if (connection.unread.empty()) continue;
        auto sent = RouterSocket::Sent::yes;
        while (!connection.unread.empty()) {
            sent = socket_.send(connection.zmq_id, connection.has_delimiter, connection.unread.front());
            if (sent != RouterSocket::Sent::yes) break;
            has_moved = true;
            shared_.add(RouterCount::sent);
            if (connection.unread.pop() == UnreadChange::resumed) tell_backlog(connection, false);
        }
        if (sent == RouterSocket::Sent::peer_is_gone) {
            gone.push_back(serial);
        } else if (connection.unread.empty()) {
            --n_waiting_clients_;
            if (connection.is_cut) readers.push_back(serial);
        }
    }
    for (const std::uint64_t serial : gone) remove(serial);
    for (const std::uint64_t serial : readers) readmit(serial);
    retry_ = has_moved ? kFirstRetry : std::min(retry_ * 2, kLastRetry);
}

// ---- connections

/// A client that was cut off has read what it was told, and starts anew: replies to what it had asked
/// before, still under way, must not reach it.
void RouterWorker::readmit(std::uint64_t old_serial) {
    auto node = connections_.extract(old_serial);
    Connection& connection = node.mapped();
    const std::uint64_t serial = next_serial_++;
    connection.serial = serial;
    connection.is_cut = false;
    by_zmq_id_[connection.zmq_id] = serial;
    by_fd_[connection.fd] = serial;
    node.key() = serial;
    connections_.insert(std::move(node));
}

void RouterWorker::remove(std::uint64_t serial) {
    const auto at = connections_.find(serial);
    if (at == connections_.end()) return;
    Connection& connection = at->second;
    if (!connection.unread.empty()) --n_waiting_clients_;
    shared_.add(RouterCount::discarded, connection.unread.size());
    by_zmq_id_.erase(connection.zmq_id);
    if (const auto owner = by_fd_.find(connection.fd); owner != by_fd_.end() && owner->second == serial)
        by_fd_.erase(owner);
    auto ended = connections_.extract(at);
    shared_.set_n_clients(connections_.size());
    drop_held(serial);
    tell_gone(ended.mapped());
}

void RouterWorker::forget(const std::vector<int>& disconnected) {
    for (const int fd : disconnected)
        if (const auto at = by_fd_.find(fd); at != by_fd_.end()) remove(at->second);
}

RouterWorker::Connection& RouterWorker::connection_of(const RouterSocket::Received& message) {
    if (const auto at = by_zmq_id_.find(message.zmq_id); at != by_zmq_id_.end()) {
        Connection& known = connections_.at(at->second);
        if (known.fd == message.fd) return known;
        remove(known.serial);  // the same chosen identity over a new connection
    }
    if (const auto at = by_fd_.find(message.fd); at != by_fd_.end()) remove(at->second);
    const std::uint64_t serial = next_serial_++;
    by_zmq_id_[message.zmq_id] = serial;
    by_fd_[message.fd] = serial;
    Connection fresh{serial,
                     message.zmq_id,
                     message.fd,
                     message.who,
                     message.has_delimiter,
                     /*is_cut=*/false,
                     /*is_known=*/false,
                     UnreadQueue(shared_.config.max_unread)};
    Connection& added = connections_.emplace(serial, std::move(fresh)).first->second;
    shared_.set_n_clients(connections_.size());
    return added;
}

// ---- from clients

void RouterWorker::receive_batch() {
    std::size_t n_bytes = 0;
    // What is not read stays with ZeroMQ and its high-water mark, which in the end stops the senders.
    for (int n = 0; n < kMaxBatchMessages && n_bytes < kMaxBatchBytes && !in_flight_.is_full(); ++n) {
        auto message = socket_.receive();
        if (!message) return;
        shared_.add(RouterCount::received);
        n_bytes += message->body.size();
        // Ended connections first: this message may come over a descriptor that one of them had.
        forget(socket_.take_disconnected());
        accept(*message);
    }
}

void RouterWorker::accept(RouterSocket::Received& message) {
    Connection& from = connection_of(message);
    if (from.is_cut) {
        shared_.add(RouterCount::ignored);
        return;
    }
    from.has_delimiter = message.has_delimiter;
    if (message.is_malformed) {
        refuse(from, std::nullopt,
               Error(Code::invalid_argument, "a message has one frame, after an empty one for REQ"));
        return;
    }
    DecodeOutcome outcome = decode_request(message.body);
    if (auto* refused = std::get_if<RefusedRequest>(&outcome)) {
        refuse(from, refused->id, std::move(refused->error));
        return;
    }
    auto& decoded = std::get<DecodedRequest>(outcome);
    if (from.has_delimiter) {
        const auto* generate = std::get_if<GenerateRequest>(&decoded.request);
        if (generate != nullptr && generate->stream) {
            refuse(from, decoded.id,
                   Error(Code::invalid_argument, "stream: a REQ socket takes one reply, send false"));
            return;
        }
        if (std::holds_alternative<CreditRequest>(decoded.request)) {
            refuse(from, decoded.id,
                   Error(Code::invalid_argument, "op: credit has no reply, a REQ socket needs one"));
            return;
        }
    }
    hand_over(from, std::move(decoded), message.body.size());
}

void RouterWorker::refuse(Connection& to, const std::optional<RequestId>& id, Error error,
                          std::optional<std::int64_t> retry_after_ms) {
    shared_.add(RouterCount::refused);
    deliver(to, encode_event(id, ErrorEvent{std::move(error), retry_after_ms}));
}

// ---- the sink

void RouterWorker::hand_over(Connection& from, DecodedRequest decoded, std::size_t n_bytes) {
    auto sink = shared_.sink();
    if (sink && !held_.empty()) deliver_held();
    if (!sink) {
        if (n_held_ >= kMaxHeld || n_held_bytes_ + n_bytes > kMaxHeldBytes) {
            refuse(from, decoded.id, Error(Code::unavailable, "the daemon is not taking requests yet"),
                   kRetryAfterMs);
            return;
        }
        ++n_held_;
        n_held_bytes_ += n_bytes;
    }
    Inbound inbound{routing_id_of(from.serial), from.who, std::move(decoded.id), std::move(decoded.request),
                    in_flight_.enter(n_bytes)};
    if (sink)
        give(*sink, from, std::move(inbound));
    else
        held_.push_back({std::move(inbound), from.serial, n_bytes});
}

void RouterWorker::give(const Sink& sink, Connection& from, PortEvent request) {
    const bool is_first = !from.is_known;
    from.is_known = true;
    call(sink, std::move(request));
    if (is_first && from.unread.is_stalled()) tell_backlog(from, true);
}

void RouterWorker::tell_backlog(const Connection& of, bool is_stalled) {
    if (of.is_known) emit(ClientBacklog{routing_id_of(of.serial), is_stalled});
}

void RouterWorker::tell_gone(Connection& of) {
    if (of.is_known) emit(ClientGone{routing_id_of(of.serial)});
    of.is_known = false;
}

void RouterWorker::emit(PortEvent event) {
    if (auto sink = shared_.sink(); sink && held_.empty())
        call(*sink, std::move(event));
    else
        held_.push_back({std::move(event), 0, 0});
}

void RouterWorker::deliver_held() {
    if (held_.empty()) return;
    const auto sink = shared_.sink();
    if (!sink) return;
    std::deque<Held> held;
    held.swap(held_);
    n_held_ = n_held_bytes_ = 0;
    for (Held& entry : held) {
        if (entry.serial == 0)
            call(*sink, std::move(entry.event));
        else
            give(*sink, connections_.at(entry.serial), std::move(entry.event));
    }
}

/// Requests of a client that is gone need not be done.
void RouterWorker::drop_held(std::uint64_t serial) {
    std::erase_if(held_, [&](const Held& entry) {
        if (entry.serial != serial) return false;
        --n_held_;
        n_held_bytes_ -= entry.n_bytes;
        return true;
    });
}

void RouterWorker::call(const Sink& sink, PortEvent event) {
    try {
        sink(std::move(event));
    } catch (const std::exception& error) {
        log_error("ipc", std::string("the sink threw: ") + error.what());
    }
}

}  // namespace pantheon::ipc

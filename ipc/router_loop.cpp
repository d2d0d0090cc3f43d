#include "ipc/router_loop.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <deque>
#include <thread>
#include <unordered_map>

#include "ipc/codec.h"
#include "ipc/limits.h"
#include "ipc/outbox.h"
#include "ipc/unread_queue.h"
#include "runtime/base/log.h"

namespace pantheon::ipc {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;
using Sink = std::function<void(PortEvent)>;

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

bool is_final(const Event& event) {
    return std::holds_alternative<DoneEvent>(event) || std::holds_alternative<ResultEvent>(event) ||
           std::holds_alternative<ErrorEvent>(event);
}

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

enum Count { kReceived, kRefused, kSent, kDiscarded, kIgnored, kCut, kClients, kWakeups, kNumCounts };

}  // namespace

// What the socket's thread and the callers both touch: the outbox and sink under their mutexes, the rest
// atomic.
struct RouterLoop::Shared {
    explicit Shared(RouterConfig c) : config(std::move(c)) {}

    const RouterConfig config;
    Outbox outbox;
    std::atomic<bool> is_stopping{false};
    std::array<std::atomic<std::uint64_t>, kNumCounts> counts{};

    std::mutex sink_mutex;
    std::shared_ptr<const Sink> sink;

    std::mutex start_mutex;
    std::condition_variable started;
    std::optional<Result<std::string>> start_result;  // the endpoint, or why there is none

    std::string endpoint;
    std::thread thread;

    std::shared_ptr<const Sink> current_sink() {
        const std::lock_guard lock(sink_mutex);
        return sink;
    }
    void add(Count which, std::uint64_t n = 1) { counts[which].fetch_add(n, std::memory_order_relaxed); }
};

// Everything in here runs on the socket's thread.
class RouterLoop::Worker {
  public:
    Worker(Shared& shared, RouterSocket& socket) : shared_(shared), socket_(socket) {}

    void run() {
        while (!shared_.is_stopping.load()) {
            socket_.wait(shared_.outbox.fd(), n_waiting_clients_ > 0 ? retry_ : milliseconds(-1));
            shared_.add(kWakeups);
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

  private:
    struct Connection {
        std::uint64_t serial;
        std::string zmq_id;
        int fd;
        Identity who;
        bool has_delimiter;
        bool is_cut;
        bool is_known;  // the sink has been given a request of it, so it must hear of its end
        UnreadQueue unread;
    };

    void turn() {
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
    // -------------------------------------------------------------------------------------------

    void take_outbox() {
        shared_.outbox.take(batch_);
        for (Outgoing& out : batch_) {
            const auto at = connections_.find(serial_of(out.client));
            if (at == connections_.end()) {
                shared_.add(kDiscarded);
                continue;
            }
            if (!out.is_final && at->second.has_delimiter) continue;  // a REQ client gets exactly one reply
            deliver(at->second, std::move(out.frame));
        }
        batch_.clear();
    }

    /// May remove the connection.
    void deliver(Connection& to, std::string frame) {
        if (to.is_cut) {
            shared_.add(kDiscarded);
            return;
        }
        if (to.unread.empty()) {
            const auto sent = socket_.send(to.zmq_id, to.has_delimiter, frame);
            if (sent == RouterSocket::Sent::yes) {
                shared_.add(kSent);
                return;
            }
            if (sent == RouterSocket::Sent::peer_is_gone) {
                shared_.add(kDiscarded);
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

    void cut(Connection& to) {
        log_warning("ipc", "uid " + std::to_string(to.who.uid) + " pid " + std::to_string(to.who.pid) +
                               " keeps asking without reading: its replies are discarded");
        shared_.add(kCut);
        shared_.add(kDiscarded, to.unread.size() + 1);
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

    void flush_waiting() {
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
                shared_.add(kSent);
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
    // ------------------------------------------------------------------------------------------

    /// A client that was cut off has read what it was told, and starts anew: replies to what it had asked
    /// before, still under way, must not reach it.
    void readmit(std::uint64_t old_serial) {
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

    void remove(std::uint64_t serial) {
        const auto at = connections_.find(serial);
        if (at == connections_.end()) return;
        Connection& connection = at->second;
        if (!connection.unread.empty()) --n_waiting_clients_;
        shared_.add(kDiscarded, connection.unread.size());
        by_zmq_id_.erase(connection.zmq_id);
        if (const auto owner = by_fd_.find(connection.fd); owner != by_fd_.end() && owner->second == serial)
            by_fd_.erase(owner);
        auto ended = connections_.extract(at);
        shared_.counts[kClients].store(connections_.size(), std::memory_order_relaxed);
        drop_held(serial);
        tell_gone(ended.mapped());
    }

    void forget(const std::vector<int>& disconnected) {
        for (const int fd : disconnected)
            if (const auto at = by_fd_.find(fd); at != by_fd_.end()) remove(at->second);
    }

    Connection& connection_of(const RouterSocket::Received& message) {
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
        shared_.counts[kClients].store(connections_.size(), std::memory_order_relaxed);
        return added;
    }

    // ---- from clients
    // -----------------------------------------------------------------------------------------

    void receive_batch() {
        std::size_t n_bytes = 0;
        for (int n = 0; n < kMaxBatchMessages && n_bytes < kMaxBatchBytes; ++n) {
            auto message = socket_.receive();
            if (!message) return;
            shared_.add(kReceived);
            n_bytes += message->body.size();
            // Ended connections first: this message may come over a descriptor that one of them had.
            forget(socket_.take_disconnected());
            accept(*message);
        }
    }

    void accept(RouterSocket::Received& message) {
        Connection& from = connection_of(message);
        if (from.is_cut) {
            shared_.add(kIgnored);
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

    void refuse(Connection& to, const std::optional<RequestId>& id, Error error,
                std::optional<std::int64_t> retry_after_ms = std::nullopt) {
        shared_.add(kRefused);
        deliver(to, encode_event(id, ErrorEvent{std::move(error), retry_after_ms}));
    }

    // ---- the sink
    // ---------------------------------------------------------------------------------------------

    struct Held {
        PortEvent event;
        std::uint64_t serial;  // of the client that asked; 0 for what is not a request
        std::size_t n_bytes;
    };

    void hand_over(Connection& from, DecodedRequest decoded, std::size_t n_bytes) {
        auto sink = shared_.current_sink();
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
        Inbound inbound{routing_id_of(from.serial), from.who, std::move(decoded.id),
                        std::move(decoded.request)};
        if (sink)
            give(*sink, from, std::move(inbound));
        else
            held_.push_back({std::move(inbound), from.serial, n_bytes});
    }

    void give(const Sink& sink, Connection& from, PortEvent request) {
        const bool is_first = !from.is_known;
        from.is_known = true;
        call(sink, std::move(request));
        if (is_first && from.unread.is_stalled()) tell_backlog(from, true);
    }

    void tell_backlog(const Connection& of, bool is_stalled) {
        if (of.is_known) emit(ClientBacklog{routing_id_of(of.serial), is_stalled});
    }

    void tell_gone(Connection& of) {
        if (of.is_known) emit(ClientGone{routing_id_of(of.serial)});
        of.is_known = false;
    }

    void emit(PortEvent event) {
        if (auto sink = shared_.current_sink(); sink && held_.empty())
            call(*sink, std::move(event));
        else
            held_.push_back({std::move(event), 0, 0});
    }

    void deliver_held() {
        if (held_.empty()) return;
        const auto sink = shared_.current_sink();
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
    void drop_held(std::uint64_t serial) {
        std::erase_if(held_, [&](const Held& entry) {
            if (entry.serial != serial) return false;
            --n_held_;
            n_held_bytes_ -= entry.n_bytes;
            return true;
        });
    }

    static void call(const Sink& sink, PortEvent event) {
        try {
            sink(std::move(event));
        } catch (const std::exception& error) {
            log_error("ipc", std::string("the sink threw: ") + error.what());
        }
    }

    Shared& shared_;
    RouterSocket& socket_;
    std::vector<Outgoing> batch_;
    std::unordered_map<std::uint64_t, Connection> connections_;
    std::unordered_map<std::string, std::uint64_t> by_zmq_id_;
    std::unordered_map<int, std::uint64_t> by_fd_;
    std::uint64_t next_serial_ = 1;
    std::size_t n_waiting_clients_ = 0;  // with a queue that is not empty
    milliseconds retry_ = kFirstRetry;
    std::deque<Held> held_;
    std::size_t n_held_ = 0;
    std::size_t n_held_bytes_ = 0;
};

RouterLoop::RouterLoop(std::unique_ptr<Shared> shared) : shared_(std::move(shared)) {}

Result<std::unique_ptr<RouterLoop>> RouterLoop::start(RouterConfig config) {
    std::unique_ptr<RouterLoop> loop(new RouterLoop(std::make_unique<Shared>(std::move(config))));
    Shared& shared = *loop->shared_;
    shared.thread = std::thread([&shared] {
        // Signals are for the main thread.
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, nullptr);
        const auto report = [&shared](Result<std::string> result) {
            const std::lock_guard lock(shared.start_mutex);
            shared.start_result.emplace(std::move(result));
            shared.started.notify_one();
        };
        auto socket = RouterSocket::open(shared.config);
        if (!socket) {
            report(std::move(socket).error());
            return;
        }
        report((*socket)->endpoint());
        Worker(shared, **socket).run();
    });
    std::unique_lock lock(shared.start_mutex);
    shared.started.wait(lock, [&] { return shared.start_result.has_value(); });
    if (!*shared.start_result) return std::move(*shared.start_result).error();
    shared.endpoint = **shared.start_result;
    return loop;
}

RouterLoop::~RouterLoop() {
    shared_->is_stopping.store(true);
    shared_->outbox.wake();
    if (shared_->thread.joinable()) shared_->thread.join();
}

void RouterLoop::send(const RoutingId& client, const RequestId& id, Event event) {
    // Encoded here, on the caller's thread: the socket's thread only moves bytes.
    std::string frame = encode_event(id, event);
    if (frame.size() > kMaxReplyBytes) {
        const std::string size =
            std::to_string(frame.size()) + " bytes, limit " + std::to_string(kMaxReplyBytes);
        event = ErrorEvent{Error(Code::resource_exhausted, "the reply has " + size), std::nullopt};
        frame = encode_event(id, event);
    }
    shared_->outbox.push({client, std::move(frame), is_final(event)});
}

void RouterLoop::set_sink(std::function<void(PortEvent)> sink) {
    {
        auto next = sink ? std::make_shared<const Sink>(std::move(sink)) : nullptr;
        const std::lock_guard lock(shared_->sink_mutex);
        shared_->sink.swap(next);
        // The old one dies after the lock, in `next`, unless the socket's thread is inside it.
    }
    shared_->outbox.wake();
}

const std::string& RouterLoop::endpoint() const {
    return shared_->endpoint;
}

RouterCounts RouterLoop::counts() const {
    const auto value = [&](Count which) { return shared_->counts[which].load(std::memory_order_relaxed); };
    return {value(kReceived), value(kRefused), value(kSent),    value(kDiscarded),
            value(kIgnored),  value(kCut),     value(kClients), value(kWakeups)};
}

}  // namespace pantheon::ipc

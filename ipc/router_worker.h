// RouterLoop's thread from the inside: which connections there are, what waits for each, and what the sink is
// told. Private to ipc/; router_loop.h says what it all does.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/client_messages.h"
#include "ipc/codec.h"
#include "ipc/outbox.h"
#include "ipc/router_socket.h"
#include "ipc/unread_queue.h"

namespace pantheon::ipc {

enum class RouterCount { received, refused, sent, discarded, ignored, cut, clients, wakeups, n };

/// What the socket's thread and the callers both touch: outbox and sink under their mutexes, the rest atomic.
struct RouterShared {
    using Sink = std::function<void(PortEvent)>;

    explicit RouterShared(RouterConfig c) : config(std::move(c)) {}

    const RouterConfig config;
    Outbox outbox;
    std::atomic<bool> is_stopping{false};

    std::shared_ptr<const Sink> sink() {
        const std::lock_guard lock(sink_mutex_);
        return sink_;
    }
    void set_sink(std::shared_ptr<const Sink> sink) {
        const std::lock_guard lock(sink_mutex_);
        sink_.swap(sink);
        // The old one is destroyed with the parameter, after the lock, unless the socket's thread is inside
        // it.
    }

    void add(RouterCount which, std::uint64_t n = 1) { slot(which).fetch_add(n, std::memory_order_relaxed); }
    void set_n_clients(std::uint64_t n) { slot(RouterCount::clients).store(n, std::memory_order_relaxed); }
    std::uint64_t count(RouterCount which) { return slot(which).load(std::memory_order_relaxed); }

  private:
    std::atomic<std::uint64_t>& slot(RouterCount which) { return counts_[static_cast<std::size_t>(which)]; }

    std::mutex sink_mutex_;
    std::shared_ptr<const Sink> sink_;
    std::array<std::atomic<std::uint64_t>, static_cast<std::size_t>(RouterCount::n)> counts_{};
};

/// Requests that the sink has been given and the actors have not yet taken up. Without a bound on them a
/// flood of requests, each cheap to send, would fill the actors' mailboxes.
class InFlight {
  public:
    /// Counts a request until the last copy of the result is gone, on whatever thread that happens.
    std::shared_ptr<const void> enter(std::size_t n_bytes) {
        totals_->n_requests.fetch_add(1, std::memory_order_relaxed);
        totals_->n_bytes.fetch_add(n_bytes, std::memory_order_relaxed);
        return std::shared_ptr<const void>(nullptr, [totals = totals_, n_bytes](const void*) {
            totals->n_requests.fetch_sub(1, std::memory_order_relaxed);
            totals->n_bytes.fetch_sub(n_bytes, std::memory_order_relaxed);
        });
    }
    bool is_full() const {
        return totals_->n_requests.load(std::memory_order_relaxed) >= kMaxRequests ||
               totals_->n_bytes.load(std::memory_order_relaxed) >= kMaxBytes;
    }

  private:
    static constexpr std::size_t kMaxRequests = 1024;
    static constexpr std::size_t kMaxBytes = 64u << 20;
    struct Totals {
        std::atomic<std::size_t> n_requests{0};
        std::atomic<std::size_t> n_bytes{0};
    };
    std::shared_ptr<Totals> totals_ = std::make_shared<Totals>();  // the requests may outlive the loop
};

/// Used by one thread, the one that opened the socket.
class RouterWorker {
  public:
    RouterWorker(RouterShared& shared, RouterSocket& socket);

    /// Serves until shared.is_stopping, then sends what waits for as long as config.linger allows.
    void run();

  private:
    using Sink = RouterShared::Sink;

    struct Connection {
        std::uint64_t serial;  // its RoutingId; never used twice
        std::string zmq_id;
        int fd;
        Identity who;
        bool has_delimiter;
        bool is_cut;
        bool is_known;  // the sink has been given a request of it, so it must hear of its end
        UnreadQueue unread;
    };
    struct Held {
        PortEvent event;
        std::uint64_t serial;  // of the client that asked; 0 for what is not a request
        std::size_t n_bytes;
    };

    void turn();

    // To clients. deliver may end the connection that it is given.
    void take_outbox();
    void deliver(Connection& to, std::string frame);
    void refuse(Connection& to, const std::optional<RequestId>& id, Error error,
                std::optional<std::int64_t> retry_after_ms = std::nullopt);
    void flush_waiting();
    void cut(Connection& to);

    // Connections.
    Connection& connection_of(const RouterSocket::Received& message);
    void forget(const std::vector<int>& disconnected);
    void remove(std::uint64_t serial);
    void readmit(std::uint64_t old_serial);

    // From clients.
    void receive_batch();
    void accept(RouterSocket::Received& message);
    void hand_over(Connection& from, DecodedRequest decoded, std::size_t n_bytes);

    // To the sink, or held back while there is none.
    void give(const Sink& sink, Connection& from, PortEvent request);
    void tell_backlog(const Connection& of, bool is_stalled);
    void tell_gone(Connection& of);
    void emit(PortEvent event);
    void deliver_held();
    void drop_held(std::uint64_t serial);
    static void call(const Sink& sink, PortEvent event);

    RouterShared& shared_;
    RouterSocket& socket_;
    InFlight in_flight_;
    std::vector<Outgoing> batch_;
    std::unordered_map<std::uint64_t, Connection> connections_;
    std::unordered_map<std::string, std::uint64_t> by_zmq_id_;
    std::unordered_map<int, std::uint64_t> by_fd_;
    std::uint64_t next_serial_ = 1;
    std::size_t n_waiting_clients_ = 0;  // with a queue that is not empty
    std::chrono::milliseconds retry_;
    std::deque<Held> held_;
    std::size_t n_held_ = 0;  // requests in held_, and the bytes of their frames
    std::size_t n_held_bytes_ = 0;
};

}  // namespace pantheon::ipc

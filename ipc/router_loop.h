// The thread between the client socket and the actors: decodes what clients send and hands it to a sink,
// takes replies from any thread and sends each client its own in order, keeping what a slow reader has not
// made room for.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "actors/client_messages.h"
#include "ipc/router_socket.h"
#include "runtime/base/status.h"

namespace pantheon::ipc {

/// Counts since the start; read from any thread.
struct RouterCounts {
    std::uint64_t n_received = 0;   // messages from clients
    std::uint64_t n_refused = 0;    // of those, answered by the loop itself with an error
    std::uint64_t n_sent = 0;       // replies given to ZeroMQ
    std::uint64_t n_discarded = 0;  // replies to clients that are gone or were cut off
    std::uint64_t n_ignored = 0;    // messages of clients that were cut off and have not read yet
    std::uint64_t n_cut = 0;        // clients that asked on and on without reading
    std::uint64_t n_clients = 0;    // known now
    std::uint64_t n_wakeups = 0;    // times the thread left its wait
};

/// RoutingIds are made here, one for each connection: a client that returns under the identity it chose is a
/// new client, and what was meant for the old connection never reaches the new one.
///
/// To the sink go: Inbound for each request that could be decoded; ClientBacklog when more than max_unread
/// events wait for a client, and again at half of that; ClientGone once for a connection that ended and
/// of which the sink had a request. Messages that cannot be decoded are answered by the loop.
///
/// While 1,024 requests (64 MiB) that the sink was given have not been taken up (Inbound::in_flight), no more
/// are read: ZeroMQ's queues fill, then the senders wait.
///
/// While there is no sink, up to 256 requests (32 MiB) are held back and then delivered first; further ones are
/// answered `unavailable`.
///
/// A client that keeps asking without ever reading (UnreadQueue::kSlack beyond max_unread) is cut off: its
/// replies are discarded, the sink hears ClientGone, and the next thing it can read is one error with id nil;
/// what it sends until then is ignored.
class RouterLoop final : public ClientPort {
  public:
    /// Binds and starts the thread; an error is the bind's.
    static Result<std::unique_ptr<RouterLoop>> start(RouterConfig config);

    /// Stops: sends what waits as far as clients take it within config.linger, closes the socket, removes its
    /// file. The sink is not called any more once it returns.
    ~RouterLoop() override;

    void send(const RoutingId& client, const RequestId& id, Event event) override;
    /// The old sink may still be inside its last call when this returns, if another thread makes the change.
    void set_sink(std::function<void(PortEvent)> sink) override;

    /// With a wildcard port resolved.
    const std::string& endpoint() const;
    RouterCounts counts() const;

  private:
    struct Impl;
    explicit RouterLoop(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace pantheon::ipc

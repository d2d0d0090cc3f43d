// What actors hand to the socket's thread: many producers, one consumer that sleeps in poll().
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "actors/client_messages.h"

namespace pantheon::ipc {

/// An encoded reply on its way to one client.
struct Outgoing {
    RoutingId client;
    std::string frame;
    bool is_final;  // done, result, error: the only ones that a REQ client gets
};

/// Unbounded by itself: its bound is that producers pause when told of a backlog, and that the consumer
/// always takes all. Every call is safe from any thread, except that only the consumer takes.
class Outbox {
  public:
    Outbox();
    ~Outbox();
    Outbox(const Outbox&) = delete;
    Outbox& operator=(const Outbox&) = delete;

    /// Readable while something waits; for the consumer's poll.
    int fd() const { return fd_; }

    void push(Outgoing out);
    /// Makes fd() readable without a message, so that the consumer looks at its flags.
    void wake();
    /// Replaces `batch` by all that waits, in the order of the pushes, and makes fd() unreadable.
    void take(std::vector<Outgoing>& batch);

  private:
    const int fd_;
    std::mutex mutex_;
    std::vector<Outgoing> queue_;
};

}  // namespace pantheon::ipc

// The client library's DEALER socket: one connection, never renewed behind our back, so that a stream that
// broke is seen as broken and not waited for on a daemon that knows nothing of it.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "ipc/client.h"
#include "ipc/codec.h"
#include "runtime/base/status.h"

namespace pantheon::ipc {

class ClientSocket {
  public:
    using Clock = std::chrono::steady_clock;

    /// Begins to connect. invalid_argument for an endpoint that cannot be one; for a socket file, unavailable
    /// or permission_denied at once when nobody listens or its mode forbids us.
    static Result<std::unique_ptr<ClientSocket>> open(const std::string& endpoint,
                                                      const ClientOptions& options);
    ~ClientSocket();
    ClientSocket(const ClientSocket&) = delete;
    ClientSocket& operator=(const ClientSocket&) = delete;

    Status send(const std::string& frame);

    /// The next reply. deadline_exceeded at `until` or, earlier, after a signal; unavailable when the
    /// connection has ended and all that came before is read; permission_denied when the daemon refused our
    /// key; data_loss for a reply that cannot be read.
    Result<Reply> receive(Clock::time_point until);

  private:
    struct Impl;
    explicit ClientSocket(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace pantheon::ipc

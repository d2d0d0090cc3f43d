// The client's side of the socket for programs that want one thing at a time: ask and wait, or stream one
// generation with a way to cancel it. Blocking, single-threaded, free of CAF. The `pantheon` command is built
// on it.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/client_messages.h"
#include "runtime/base/status.h"

namespace pantheon::ipc {

struct ClientOptions {
    /// "ipc:///path" or "tcp://host:port". Empty: the places of default_endpoints(), in that order.
    std::string endpoint;
    /// How long connect() waits for the answer to its ping.
    std::chrono::milliseconds reach_timeout{2000};
    /// CURVE keys in Z85 (40 characters), for tcp only: all three or none.
    std::string curve_server_key, curve_public_key, curve_secret_key;
};

/// The service's socket, then $XDG_RUNTIME_DIR/pantheond.sock where that variable is set.
std::vector<std::string> default_endpoints();

/// One connection to a daemon. Errors come in two kinds that never mix:
///  - a Result that holds an Error: this side failed, there is no answer. invalid_argument: the endpoint or
///  request
///    cannot be put into a message; permission_denied: the socket is there, its mode keeps us out;
///    unavailable: nobody is there or the connection broke; deadline_exceeded: no answer in time; data_loss:
///    an answer that cannot be read. All but invalid_argument are "unreachable" to a script
///    (is_unreachable()).
///  - an ErrorEvent, or a DoneEvent with an error: the daemon answered, and said no.
/// Not thread-safe. Movable.
class Client {
  public:
    /// Connects and pings. A socket file that is missing or that nobody listens on is reported at once, a
    /// daemon that does not answer after reach_timeout. The message names every place tried.
    static Result<Client> connect(const ClientOptions& options = {});

    Client(Client&&) noexcept;
    Client& operator=(Client&&) noexcept;
    ~Client();

    /// The endpoint that answered.
    const std::string& endpoint() const;

    /// Sends a request that has one reply and waits for it: a ResultEvent or an ErrorEvent. Not for generate
    /// (use generate()) nor for credit, which has no reply: both are invalid_argument.
    Result<Event> call(const Request& request, std::chrono::milliseconds timeout);

    /// Called for each event in order, the last one (DoneEvent or ErrorEvent) included.
    using OnEvent = std::function<void(const Event&)>;

    /// Streams one generation and returns its last event: DoneEvent, or ErrorEvent when it was never
    /// accepted. When `cancel` becomes true (a signal handler may set it), one cancel is sent and the wait
    /// goes on for the `done` that answers it, at most 10 s. Waits as long as the daemon lives: a broken
    /// connection is seen at once, a silent daemon is pinged and given up after 30 s without any sign
    /// (unavailable).
    Result<Event> generate(const GenerateRequest& request, const OnEvent& on_event,
                           const std::atomic<bool>* cancel = nullptr);

  private:
    struct Impl;
    explicit Client(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

/// True for the errors of Client that mean "could not talk to the daemon": exit code 3 of the command.
inline bool is_unreachable(const Error& error) {
    return error.code() != Code::invalid_argument;
}

}  // namespace pantheon::ipc

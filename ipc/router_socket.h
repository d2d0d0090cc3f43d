// The ROUTER socket itself: options, endpoint rules, and messages in and out without exceptions. Made, used
// and closed by one thread, which debug builds check at every call.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/client_messages.h"
#include "runtime/base/status.h"

namespace pantheon::ipc {

struct RouterConfig {
    /// "ipc:///absolute/path", or "tcp://host:port". Plain tcp is for loopback addresses only; any other
    /// address needs the CURVE fields.
    std::string endpoint;
    /// Events that may wait for one client beyond the socket's own queue before its requests are paused.
    std::size_t max_unread = 1024;
    unsigned socket_mode = 0660;
    /// Over tcp a connection without a sign of life for this long is gone; probed at a third of it. A client
    /// whose queue is full answers no probes, so this has to be longer than one may leave its replies unread.
    /// On ipc the kernel tells who is gone, and nobody is probed.
    std::chrono::milliseconds heartbeat_timeout{15'000};
    /// How long a clean stop waits for clients to take what is already sent.
    std::chrono::milliseconds linger{200};
    /// Z85. Empty: no CURVE. With it, only the listed client keys are let in.
    std::string curve_secret_key;
    std::vector<std::string> curve_client_keys;
};

/// Identity::uid of a peer that is not on an ipc socket: no user has it.
inline constexpr std::uint32_t kNoUid = 0xFFFFFFFFu;

class RouterSocket {
  public:
    /// Binds. failed_precondition or invalid_argument say which rule the endpoint breaks.
    static Result<std::unique_ptr<RouterSocket>> open(const RouterConfig& config);
    ~RouterSocket();
    RouterSocket(const RouterSocket&) = delete;
    RouterSocket& operator=(const RouterSocket&) = delete;

    /// The endpoint with a wildcard port resolved.
    const std::string& endpoint() const;

    /// Waits until a message, a lost connection or `extra_fd` needs attention, at most `timeout` (negative:
    /// for ever). With `takes_messages` false a waiting message does not end the wait.
    void wait(int extra_fd, std::chrono::milliseconds timeout, bool takes_messages = true);

    struct Received {
        std::string zmq_id;
        int fd;  // the connection's descriptor: unique among those that live
        Identity who;
        bool has_delimiter;  // a REQ client
        std::string body;
        bool is_malformed;  // more or fewer frames than the protocol has
    };
    /// The next message, if one is there.
    std::optional<Received> receive();

    /// Descriptors of connections that ended since the last call. All that ended before the last received
    /// message was sent are among them, so a descriptor that is used again is not mistaken.
    std::vector<int> take_disconnected();

    enum class Sent { yes, queue_is_full, peer_is_gone };
    /// Never blocks. On queue_is_full nothing was queued.
    Sent send(const std::string& zmq_id, bool with_delimiter, std::string_view body);

  private:
    struct Impl;
    explicit RouterSocket(std::unique_ptr<Impl> impl);
    void check_thread() const;
    std::unique_ptr<Impl> impl_;
};

}  // namespace pantheon::ipc

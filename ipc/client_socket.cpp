#include "ipc/client_socket.h"

#include <cstring>
#include <optional>
#include <zmq.hpp>

#include "ipc/limits.h"
#include "ipc/socket_file.h"

namespace pantheon::ipc {
namespace {

constexpr const char* kMonitorEndpoint = "inproc://pantheon-client-monitor";
constexpr int kEvents = ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CLOSED | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;
constexpr int kHeartbeatMs = 5'000;

Status check_listener(const std::string& path) {
    switch (probe_listener(path)) {
        case Listener::none:
            return Error(Code::unavailable, "nobody listens on " + path);
        case Listener::forbidden:
            return Error(Code::permission_denied, "no permission to use the socket " + path);
        case Listener::present:
            break;
    }
    return {};
}

}  // namespace

struct ClientSocket::Impl {
    std::string endpoint;
    zmq::context_t context{1};
    zmq::socket_t monitor;
    zmq::socket_t dealer;
    std::optional<Error> ended;  // once the connection is over

    std::optional<std::string> try_receive() {
        zmq::message_t part;
        if (zmq_msg_recv(part.handle(), dealer.handle(), ZMQ_DONTWAIT) < 0) return std::nullopt;
        std::string frame = part.to_string();
        // A reply is one frame; more would be no reply of ours, and decoding says so.
        while (part.more() && zmq_msg_recv(part.handle(), dealer.handle(), ZMQ_DONTWAIT) >= 0)
            frame += part.to_string();
        return frame;
    }

    void read_monitor() {
        zmq::message_t part;
        while (zmq_msg_recv(part.handle(), monitor.handle(), ZMQ_DONTWAIT) >= 0) {
            std::uint16_t event = 0;
            if (part.size() >= sizeof event) std::memcpy(&event, part.data(), sizeof event);
            while (part.more() && zmq_msg_recv(part.handle(), monitor.handle(), ZMQ_DONTWAIT) >= 0) {
            }
            if (ended) continue;
            if (event == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH)
                ended = Error(Code::permission_denied, endpoint + ": the daemon does not accept our key");
            else if (event == ZMQ_EVENT_CLOSED)
                ended = Error(Code::unavailable, "nobody listens on " + endpoint);
            else
                ended = Error(Code::unavailable, "the daemon closed the connection");
        }
    }
};

ClientSocket::ClientSocket(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

ClientSocket::~ClientSocket() {
    zmq_socket_monitor(impl_->dealer.handle(), nullptr, 0);
}

Result<std::unique_ptr<ClientSocket>> ClientSocket::open(const std::string& endpoint,
                                                         const ClientOptions& options) {
    const std::string path = ipc_path(endpoint);
    if (path.empty() && !endpoint.starts_with("tcp://"))
        return Error(Code::invalid_argument, "endpoint '" + endpoint + "': neither ipc:// nor tcp://");
    if (!path.empty())
        if (auto status = check_listener(path); !status) return std::move(status).error();
    try {
        auto impl = std::make_unique<Impl>();
        impl->endpoint = endpoint;
        impl->dealer = zmq::socket_t(impl->context, zmq::socket_type::dealer);
        zmq::socket_t& dealer = impl->dealer;
        dealer.set(zmq::sockopt::linger,
                   0);  // every request is waited for, so nothing is left to send at the end
        dealer.set(zmq::sockopt::reconnect_ivl, -1);
        dealer.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(kMaxReplyBytes));
        // A full queue would keep the daemon's signs of life out while a caller is busy, say with a pager.
        dealer.set(zmq::sockopt::rcvhwm, 0);
        dealer.set(zmq::sockopt::heartbeat_ivl, kHeartbeatMs);
        dealer.set(zmq::sockopt::heartbeat_timeout, 3 * kHeartbeatMs);
        if (!options.curve_server_key.empty()) {
            dealer.set(zmq::sockopt::curve_serverkey, options.curve_server_key);
            dealer.set(zmq::sockopt::curve_publickey, options.curve_public_key);
            dealer.set(zmq::sockopt::curve_secretkey, options.curve_secret_key);
        }
        if (zmq_socket_monitor(dealer.handle(), kMonitorEndpoint, kEvents) != 0) throw zmq::error_t();
        impl->monitor = zmq::socket_t(impl->context, zmq::socket_type::pair);
        impl->monitor.set(zmq::sockopt::linger, 0);
        impl->monitor.connect(kMonitorEndpoint);
        dealer.connect(endpoint);
        return std::unique_ptr<ClientSocket>(new ClientSocket(std::move(impl)));
    } catch (const zmq::error_t& error) {
        return Error(Code::invalid_argument, "endpoint '" + endpoint + "': " + error.what());
    }
}

Status ClientSocket::send(const std::string& frame) {
    while (zmq_send(impl_->dealer.handle(), frame.data(), frame.size(), ZMQ_DONTWAIT) < 0) {
        if (zmq_errno() == EINTR) continue;
        impl_->read_monitor();
        if (impl_->ended) return *impl_->ended;
        return Error(Code::unavailable, "the daemon does not take our messages");
    }
    return {};
}

Result<Reply> ClientSocket::receive(Clock::time_point until) {
    for (;;) {
        if (auto frame = impl_->try_receive()) return decode_reply(*frame);
        // What came before the end was there before the end was told.
        if (impl_->ended) return *impl_->ended;
        impl_->read_monitor();
        if (impl_->ended) continue;
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
        if (left.count() <= 0) return Error(Code::deadline_exceeded, "no answer in time");
        zmq_pollitem_t items[] = {{impl_->dealer.handle(), 0, ZMQ_POLLIN, 0},
                                  {impl_->monitor.handle(), 0, ZMQ_POLLIN, 0}};
        if (zmq_poll(items, 2, static_cast<long>(left.count())) < 0 && zmq_errno() == EINTR)
            return Error(Code::deadline_exceeded, "interrupted");
    }
}

}  // namespace pantheon::ipc

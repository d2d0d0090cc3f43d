#include "ipc/router_socket.h"

#include <arpa/inet.h>

#include <cassert>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <thread>
#include <zmq.hpp>

#include "ipc/curve_gate.h"
#include "ipc/limits.h"
#include "ipc/socket_file.h"
#include "runtime/base/log.h"

namespace pantheon::ipc {
namespace {

// Messages in the socket's own queues, each way and connection. Inbound ones may have 4 MiB each.
constexpr int kSendQueue = 256;
constexpr int kReceiveQueue = 32;
constexpr const char* kMonitorEndpoint = "inproc://pantheon-router-monitor";

bool is_loopback(std::string host) {
    if (host == "localhost") return true;
    if (host.starts_with("[") && host.ends_with("]")) host = host.substr(1, host.size() - 2);
    in_addr v4{};
    if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
    in6_addr v6{};
    return inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

Status check_tcp(const RouterConfig& config) {
    constexpr std::string_view kScheme = "tcp://";
    const auto refuse = [&](const char* what) {
        return Error(Code::invalid_argument, config.endpoint + ": " + what);
    };
    if (!config.endpoint.starts_with(kScheme)) return refuse("neither ipc:// nor tcp://");
    const std::size_t colon = config.endpoint.rfind(':');
    if (colon < kScheme.size()) return refuse("no port");
    if (config.curve_secret_key.empty()) {
        const std::string host = config.endpoint.substr(kScheme.size(), colon - kScheme.size());
        if (!is_loopback(host))
            return refuse("plain tcp is for loopback addresses; this one needs CURVE keys");
        return {};
    }
    if (config.curve_client_keys.empty()) return refuse("CURVE without client keys lets nobody in");
    return {};
}

/// libzmq fills "Peer-Address" from SO_PEERCRED: "localhost:UID:GID:PID".
Identity ipc_identity(std::string_view address) {
    Identity who{kNoUid, 0, {}};
    std::uint32_t fields[3] = {};
    std::size_t at = address.find(':');
    for (std::uint32_t& field : fields) {
        if (at == std::string_view::npos) return who;
        const char* begin = address.data() + at + 1;
        const auto parsed = std::from_chars(begin, address.data() + address.size(), field);
        if (parsed.ec != std::errc()) return who;
        at = parsed.ptr < address.data() + address.size()
                 ? static_cast<std::size_t>(parsed.ptr - address.data())
                 : std::string_view::npos;
    }
    who.uid = fields[0];
    who.pid = fields[2];
    return who;
}

std::string_view property(zmq::message_t& message, const char* name) {
    const char* value = zmq_msg_gets(message.handle(), name);
    return value == nullptr ? std::string_view() : std::string_view(value);
}

}  // namespace

struct RouterSocket::Impl {
    std::thread::id owner = std::this_thread::get_id();
    std::string endpoint;
    bool is_ipc = false;
    // Order matters: sockets close before the context, the socket file goes last.
    std::optional<SocketFile> file;
    zmq::context_t context{1};
    std::optional<CurveGate> gate;
    zmq::socket_t monitor;
    zmq::socket_t router;
};

RouterSocket::RouterSocket(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

RouterSocket::~RouterSocket() {
    check_thread();
    zmq_socket_monitor(impl_->router.handle(), nullptr, 0);
}

void RouterSocket::check_thread() const {
    assert(impl_->owner == std::this_thread::get_id() && "the socket belongs to the thread that opened it");
}

Result<std::unique_ptr<RouterSocket>> RouterSocket::open(const RouterConfig& config) {
    const std::string path = ipc_path(config.endpoint);
    try {
        auto impl = std::make_unique<Impl>();
        impl->is_ipc = !path.empty();
        if (impl->is_ipc) {
            auto file = SocketFile::claim(path, static_cast<mode_t>(config.socket_mode));
            if (!file) return std::move(file).error();
            impl->file.emplace(std::move(file).value());
        } else if (auto status = check_tcp(config); !status) {
            return std::move(status).error();
        }

        impl->router = zmq::socket_t(impl->context, zmq::socket_type::router);
        zmq::socket_t& router = impl->router;
        router.set(zmq::sockopt::router_mandatory, true);
        router.set(zmq::sockopt::linger, static_cast<int>(config.linger.count()));
        router.set(zmq::sockopt::sndhwm, kSendQueue);
        router.set(zmq::sockopt::rcvhwm, kReceiveQueue);
        router.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(kMaxRequestBytes));
        if (!impl->is_ipc) {
            const int timeout_ms = static_cast<int>(config.heartbeat_timeout.count());
            router.set(zmq::sockopt::heartbeat_ivl, timeout_ms / 3);
            router.set(zmq::sockopt::heartbeat_timeout, timeout_ms);
        }
        if (zmq_socket_monitor(router.handle(), kMonitorEndpoint, ZMQ_EVENT_DISCONNECTED) != 0)
            return Error(Code::internal, std::string("socket monitor: ") + zmq_strerror(zmq_errno()));
        impl->monitor = zmq::socket_t(impl->context, zmq::socket_type::pair);
        impl->monitor.set(zmq::sockopt::linger, 0);
        impl->monitor.set(zmq::sockopt::rcvhwm, 0);  // an ended connection must never be forgotten
        impl->monitor.connect(kMonitorEndpoint);
        if (!config.curve_secret_key.empty()) {
            impl->gate.emplace(impl->context, config.curve_client_keys);
            router.set(zmq::sockopt::curve_server, true);
            router.set(zmq::sockopt::curve_secretkey, config.curve_secret_key);
        }
        if (impl->file) router.set(zmq::sockopt::use_fd, impl->file->take_fd());
        router.bind(config.endpoint);
        impl->endpoint = router.get(zmq::sockopt::last_endpoint);
        return std::unique_ptr<RouterSocket>(new RouterSocket(std::move(impl)));
    } catch (const zmq::error_t& error) {
        return Error(Code::failed_precondition, config.endpoint + ": " + error.what());
    }
}

const std::string& RouterSocket::endpoint() const {
    return impl_->endpoint;
}

void RouterSocket::wait(int extra_fd, std::chrono::milliseconds timeout, bool takes_messages) {
    check_thread();
    const short events = takes_messages ? ZMQ_POLLIN : 0;
    zmq_pollitem_t items[] = {{impl_->router.handle(), 0, events, 0},
                              {impl_->monitor.handle(), 0, ZMQ_POLLIN, 0},
                              {nullptr, extra_fd, ZMQ_POLLIN, 0},
                              {impl_->gate ? impl_->gate->handle() : nullptr, 0, ZMQ_POLLIN, 0}};
    // A signal only makes it return early, which the caller's loop allows for.
    zmq_poll(items, impl_->gate ? 4 : 3, timeout.count() < 0 ? -1 : static_cast<long>(timeout.count()));
    if (impl_->gate) impl_->gate->answer_waiting();
}

std::optional<RouterSocket::Received> RouterSocket::receive() {
    check_thread();
    zmq::message_t part;
    if (zmq_msg_recv(part.handle(), impl_->router.handle(), ZMQ_DONTWAIT) < 0) return std::nullopt;
    Received r{part.to_string(), -1, {kNoUid, 0, {}}, false, {}, false};
    int n_parts = 0;
    while (part.more()) {
        if (zmq_msg_recv(part.handle(), impl_->router.handle(), ZMQ_DONTWAIT) < 0) break;
        if (n_parts == 0) {
            r.fd = zmq_msg_get(part.handle(), ZMQ_SRCFD);
            if (impl_->is_ipc) r.who = ipc_identity(property(part, "Peer-Address"));
            if (impl_->gate) r.who.curve_key = property(part, "User-Id");
            r.has_delimiter = part.size() == 0 && part.more();
        }
        const bool is_body = n_parts == (r.has_delimiter ? 1 : 0) && !part.more();
        if (is_body) r.body.assign(static_cast<const char*>(part.data()), part.size());
        r.is_malformed = !is_body;
        ++n_parts;
    }
    return r;
}

std::vector<int> RouterSocket::take_disconnected() {
    check_thread();
    std::vector<int> fds;
    zmq::message_t part;
    while (zmq_msg_recv(part.handle(), impl_->monitor.handle(), ZMQ_DONTWAIT) >= 0) {
        // First frame: u16 event, u32 value, which is the descriptor. Second frame: the endpoint.
        std::int32_t fd = -1;
        if (part.size() >= 6) {
            std::memcpy(&fd, static_cast<const char*>(part.data()) + 2, sizeof fd);
            fds.push_back(fd);
        }
        while (part.more() && zmq_msg_recv(part.handle(), impl_->monitor.handle(), ZMQ_DONTWAIT) >= 0) {
        }
    }
    return fds;
}

RouterSocket::Sent RouterSocket::send(const std::string& zmq_id, bool with_delimiter, std::string_view body) {
    check_thread();
    void* router = impl_->router.handle();
    // The identity frame decides: if the peer is gone or its queue is full, nothing has been queued.
    if (zmq_send(router, zmq_id.data(), zmq_id.size(), ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0) {
        const int error = zmq_errno();
        return error == EHOSTUNREACH ? Sent::peer_is_gone : Sent::queue_is_full;
    }
    if (with_delimiter) zmq_send(router, "", 0, ZMQ_SNDMORE | ZMQ_DONTWAIT);
    if (zmq_send(router, body.data(), body.size(), ZMQ_DONTWAIT) < 0)
        log_error("ipc", std::string("a reply could not be queued: ") + zmq_strerror(zmq_errno()));
    return Sent::yes;
}

}  // namespace pantheon::ipc

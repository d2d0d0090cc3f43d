#include "ipc/client.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "ipc/client_socket.h"
#include "ipc/codec.h"

namespace pantheon::ipc {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = ClientSocket::Clock;

// A signal that comes just before the wait begins is noticed after this.
constexpr milliseconds kCancelTick{100};
constexpr seconds kCancelPatience{10};
constexpr seconds kPingAfterSilence{10};
constexpr seconds kGiveUpAfterSilence{30};
constexpr const char* kServiceEndpoint = "ipc:///run/pantheon/pantheond.sock";

bool is_last(const Event& event) {
    return std::holds_alternative<DoneEvent>(event) || std::holds_alternative<ErrorEvent>(event);
}

bool is_timeout(const Error& error) {
    return error.code() == Code::deadline_exceeded;
}

/// Of the errors at several places the one that tells most: a daemon that is there but keeps us out, then one
/// that does not answer, then none.
Code more_telling(Code a, Code b) {
    for (const Code code : {Code::permission_denied, Code::deadline_exceeded, Code::data_loss})
        if (a == code || b == code) return code;
    return Code::unavailable;
}

}  // namespace

std::vector<std::string> default_endpoints() {
    std::vector<std::string> endpoints = {kServiceEndpoint};
    // systemd sets it for every login; it is where the daemon's own default is.
    if (const char* dir = std::getenv("XDG_RUNTIME_DIR"); dir != nullptr && *dir != '\0')
        endpoints.push_back("ipc://" + std::string(dir) + "/pantheond.sock");
    return endpoints;
}

struct Client::Impl {
    std::string endpoint;
    std::unique_ptr<ClientSocket> socket;
    // Different in every process, so that `cancel` can tell the requests of one user apart.
    std::uint64_t last_id = static_cast<std::uint64_t>(::getpid()) * 1000;

    Result<std::uint64_t> ask(const Request& request) {
        const std::uint64_t id = ++last_id;
        auto frame = encode_request(id, request);
        if (!frame) return std::move(frame).error();
        if (auto status = socket->send(*frame); !status) return std::move(status).error();
        return id;
    }

    /// Whether a reply belongs to a request. A refusal of what could not be read carries no id; we have one
    /// request under way, so it is meant.
    static bool answers(const Reply& reply, std::uint64_t id) {
        if (!reply.id) return std::holds_alternative<ErrorEvent>(reply.event);
        return *reply.id == RequestId(id);
    }

    Result<Event> call(const Request& request, milliseconds timeout) {
        const auto deadline = Clock::now() + timeout;
        const auto id = ask(request);
        if (!id) return id.error();
        for (;;) {
            auto reply = socket->receive(deadline);
            if (!reply) {
                // A signal is no answer; only the clock ends the wait.
                if (is_timeout(reply.error()) && Clock::now() < deadline) continue;
                return std::move(reply).error();
            }
            if (answers(*reply, *id)) return std::move(reply->event);
        }
    }

    static Result<std::unique_ptr<Impl>> reach(const std::string& endpoint, const ClientOptions& options) {
        auto socket = ClientSocket::open(endpoint, options);
        if (!socket) return std::move(socket).error();
        auto impl = std::make_unique<Impl>();
        impl->endpoint = endpoint;
        impl->socket = std::move(socket).value();
        auto pong = impl->call(PingRequest{}, options.reach_timeout);
        if (!pong) return std::move(pong).error().with_context(endpoint);
        return impl;  // even a refusal is a sign of life
    }
};

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;
Client::~Client() = default;

const std::string& Client::endpoint() const {
    return impl_->endpoint;
}

Result<Client> Client::connect(const ClientOptions& options) {
    const bool is_named = !options.endpoint.empty();
    const auto endpoints = is_named ? std::vector<std::string>{options.endpoint} : default_endpoints();
    Code code = Code::unavailable;
    std::string message;
    for (const std::string& endpoint : endpoints) {
        auto impl = Impl::reach(endpoint, options);
        if (impl) return Client(std::move(impl).value());
        if (impl.error().code() == Code::invalid_argument) return std::move(impl).error();
        code = more_telling(code, impl.error().code());
        message += (message.empty() ? "" : "; ") + impl.error().message();
    }
    return Error(code, std::move(message));
}

Result<Event> Client::call(const Request& request, std::chrono::milliseconds timeout) {
    if (std::holds_alternative<GenerateRequest>(request) || std::holds_alternative<CreditRequest>(request))
        return Error(Code::invalid_argument, std::string(op_name(request)) + " does not have one reply");
    return impl_->call(request, timeout);
}

Result<Event> Client::generate(const GenerateRequest& request, const OnEvent& on_event,
                               const std::atomic<bool>* cancel) {
    const auto id = impl_->ask(request);
    if (!id) return id.error();
    auto last_sign = Clock::now();
    std::optional<Clock::time_point> last_ping;
    std::optional<Clock::time_point> cancelled_at;
    for (;;) {
        if (cancel != nullptr && cancel->load() && !cancelled_at) {
            if (auto sent = impl_->ask(CancelRequest{RequestId(*id)}); !sent) return std::move(sent).error();
            cancelled_at = Clock::now();
        }
        auto reply = impl_->socket->receive(Clock::now() + kCancelTick);
        const auto now = Clock::now();
        if (reply) {
            last_sign = now;
            if (!Impl::answers(*reply, *id)) continue;  // of a ping or the cancel
            if (on_event) on_event(reply->event);
            if (is_last(reply->event)) return std::move(reply->event);
            continue;
        }
        if (!is_timeout(reply.error())) return std::move(reply).error();
        if (cancelled_at && now - *cancelled_at > kCancelPatience)
            return Error(Code::deadline_exceeded, "the daemon does not end a cancelled request");
        if (now - last_sign > kGiveUpAfterSilence)
            return Error(Code::unavailable, "no sign of the daemon for " +
                                                std::to_string(seconds(kGiveUpAfterSilence).count()) + " s");
        if (now - std::max(last_sign, last_ping.value_or(last_sign)) > kPingAfterSilence) {
            if (auto sent = impl_->ask(PingRequest{}); !sent) return std::move(sent).error();
            last_ping = now;
        }
    }
}

}  // namespace pantheon::ipc

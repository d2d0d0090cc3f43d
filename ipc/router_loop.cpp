#include "ipc/router_loop.h"

#include <pthread.h>

#include <condition_variable>
#include <csignal>
#include <thread>

#include "ipc/codec.h"
#include "ipc/limits.h"
#include "ipc/router_worker.h"

namespace pantheon::ipc {
namespace {

bool is_final(const Event& event) {
    return std::holds_alternative<DoneEvent>(event) || std::holds_alternative<ResultEvent>(event) ||
           std::holds_alternative<ErrorEvent>(event);
}

}  // namespace

struct RouterLoop::Impl {
    explicit Impl(RouterConfig config) : shared(std::move(config)) {}

    RouterShared shared;
    std::string endpoint;
    std::thread thread;

    std::mutex start_mutex;
    std::condition_variable started;
    std::optional<Result<std::string>> start_result;  // the endpoint, or why there is none

    /// The socket's thread.
    void run() {
        // Signals are for the main thread.
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, nullptr);
        auto socket = RouterSocket::open(shared.config);
        if (!socket) return report(std::move(socket).error());
        report((*socket)->endpoint());
        RouterWorker(shared, **socket).run();
    }

    void report(Result<std::string> result) {
        const std::lock_guard lock(start_mutex);
        start_result.emplace(std::move(result));
        started.notify_one();
    }
};

RouterLoop::RouterLoop(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<RouterLoop>> RouterLoop::start(RouterConfig config) {
    std::unique_ptr<RouterLoop> loop(new RouterLoop(std::make_unique<Impl>(std::move(config))));
    Impl& impl = *loop->impl_;
    impl.thread = std::thread([&impl] { impl.run(); });
    std::unique_lock lock(impl.start_mutex);
    impl.started.wait(lock, [&] { return impl.start_result.has_value(); });
    if (!*impl.start_result) return std::move(*impl.start_result).error();
    impl.endpoint = **impl.start_result;
    return loop;
}

RouterLoop::~RouterLoop() {
    impl_->shared.is_stopping.store(true);
    impl_->shared.outbox.wake();
    if (impl_->thread.joinable()) impl_->thread.join();
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
    impl_->shared.outbox.push({client, std::move(frame), is_final(event)});
}

void RouterLoop::set_sink(std::function<void(PortEvent)> sink) {
    impl_->shared.set_sink(sink ? std::make_shared<const RouterShared::Sink>(std::move(sink)) : nullptr);
    impl_->shared.outbox.wake();
}

const std::string& RouterLoop::endpoint() const {
    return impl_->endpoint;
}

RouterCounts RouterLoop::counts() const {
    const auto value = [&](RouterCount which) { return impl_->shared.count(which); };
    return {value(RouterCount::received),  value(RouterCount::refused), value(RouterCount::sent),
            value(RouterCount::discarded), value(RouterCount::ignored), value(RouterCount::cut),
            value(RouterCount::clients),   value(RouterCount::wakeups)};
}

}  // namespace pantheon::ipc

#include "runtime/daemon/service.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <atomic>
#include <caf/policy/work_sharing.hpp>
#include <caf/scheduler/coordinator.hpp>
#include <csignal>
#include <mutex>
#include <optional>
#include <thread>

#include "actors/supervisor.h"
#include "runtime/base/log.h"

namespace pantheon::daemon {
namespace {

using namespace std::chrono_literals;

constexpr int kClean = 0;
constexpr int kFailed = 1;
constexpr int kBadConfigOrModel = 78;  // trying again would not help: the unit does not restart on it
constexpr auto kActorSystemEnd = 10s;  // for actors to end after they were told to; then the process leaves

sigset_t handled_signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
    return set;
}

/// What actor threads tell the main thread, with a descriptor to poll.
class Mailbox {
  public:
    Mailbox() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
    ~Mailbox() { ::close(fd_); }
    Mailbox(const Mailbox&) = delete;
    Mailbox& operator=(const Mailbox&) = delete;

    void stopped() {
        set([](Mailbox& m) { m.is_stopped_ = true; });
    }
    void failed(const Error& error) {
        set([&](Mailbox& m) { m.failure_ = error; });
    }
    int fd() const { return fd_; }
    bool is_over() {
        std::lock_guard lock(mutex_);
        return is_stopped_ || failure_;
    }
    std::optional<Error> failure() {
        std::lock_guard lock(mutex_);
        return failure_;
    }

  private:
    template <class Change>
    void set(Change change) {
        {
            std::lock_guard lock(mutex_);
            change(*this);
        }
        const std::uint64_t one = 1;
        [[maybe_unused]] const auto written = ::write(fd_, &one, sizeof one);
    }
    int fd_;
    std::mutex mutex_;
    bool is_stopped_ = false;
    std::optional<Error> failure_;
};

struct SystemConfig : caf::actor_system_config {
    SystemConfig() {
        // No worker polls while nothing happens; the default policy would wake up hundreds of times a second.
        set("scheduler.policy", caf::atom("sharing"));
        set("scheduler.max-threads", std::size_t{2});
        set("scheduler.max-throughput", std::size_t{64});
    }
};

/// CAF only prints when it does not understand a setting, so what took effect is checked.
bool has_sharing_scheduler(caf::actor_system& system) {
    return dynamic_cast<caf::scheduler::coordinator<caf::policy::work_sharing>*>(&system.scheduler()) !=
           nullptr;
}

/// Ends the process when the actor system does not: an operator who asked for a stop gets one.
class EndGuard {
  public:
    explicit EndGuard(int exit_code)
        : thread_([this, exit_code] {
              std::unique_lock lock(mutex_);
              if (!over_.wait_for(lock, kActorSystemEnd, [this] { return is_over_; })) {
                  log_error("daemon", "actors do not end; leaving");
                  ::_exit(exit_code == 0 ? 1 : exit_code);
              }
          }) {}
    ~EndGuard() {
        {
            std::lock_guard lock(mutex_);
            is_over_ = true;
        }
        over_.notify_all();
        thread_.join();
    }

  private:
    std::mutex mutex_;
    std::condition_variable over_;
    bool is_over_ = false;
    std::thread thread_;
};

/// A start that failed like this fails the same way the next time.
bool is_lasting(const Error& error) {
    return error.code() == Code::data_loss || error.code() == Code::invalid_argument ||
           error.code() == Code::unimplemented || error.code() == Code::failed_precondition;
}

std::string serving_text(const actors::EngineSnapshot& engine) {
    if (engine.n_busy == 0 && engine.n_waiting == 0) return "Serving";
    return "Serving: " + std::to_string(engine.n_busy) + " running, " + std::to_string(engine.n_waiting) +
           " waiting";
}

/// Waits for the supervisor's end; passes signals on.
void wait_for_end(Mailbox& mailbox, const actors::SupervisorActor& root, Notifier& notifier,
                  const std::atomic<std::int64_t>& drain_ms) {
    const sigset_t signals = handled_signals();
    const int signal_fd = ::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    bool is_stopping = false;
    std::chrono::steady_clock::time_point last_moment;
    while (!mailbox.is_over()) {
        pollfd fds[] = {{signal_fd, POLLIN, 0}, {mailbox.fd(), POLLIN, 0}};
        ::poll(fds, 2, is_stopping ? 1000 : -1);
        if (is_stopping && std::chrono::steady_clock::now() > last_moment) {
            log_error("daemon", "requests and actors do not end in time; leaving");
            ::_exit(1);
        }
        signalfd_siginfo info;
        while (::read(signal_fd, &info, sizeof info) == sizeof info) {
            if (info.ssi_signo == SIGHUP) {
                log_info("daemon", "SIGHUP: reading the configuration again");
                caf::anon_send(root, actors::ReloadConfig{});
            } else if (is_stopping) {
                log_warning("daemon", "second signal: leaving at once");
                ::_exit(1);
            } else {
                is_stopping = true;
                const std::chrono::milliseconds drain(drain_ms.load());
                log_info("daemon",
                         "stopping: running requests have " + std::to_string(drain.count() / 1000) + " s");
                last_moment = std::chrono::steady_clock::now() + drain + kActorSystemEnd;
                notifier.stopping(drain);
                caf::anon_send(root, actors::BeginDrain{drain});
            }
        }
    }
    ::close(signal_fd);
}

}  // namespace

void block_signals() {
    const sigset_t signals = handled_signals();
    ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
}

int serve(actors::DaemonSettings settings, ipc::RouterConfig router, Notifier& notifier) {
    auto started = ipc::RouterLoop::start(std::move(router));
    if (!started) {
        log_error("daemon", started.error().to_string());
        notifier.failed(kFailed, started.error().to_string());
        return kFailed;
    }
    const std::shared_ptr<ipc::RouterLoop> port = *std::move(started);
    log_info("daemon", "listening on " + port->endpoint());

    Mailbox mailbox;
    std::atomic<bool> was_ready{false};
    std::atomic<std::int64_t> drain_ms{settings.limits.drain.count()};
    actors::SupervisorEvents events;
    events.on_ready = [&] {
        was_ready = true;
        log_info("daemon", "ready");
        notifier.ready("Serving");
    };
    events.on_reloading = [&] { notifier.reloading(); };
    events.on_reloaded = [&](const actors::DaemonSettings& in_force) {
        drain_ms = in_force.limits.drain.count();
        notifier.reloaded();
    };
    events.alive_interval = notifier.alive_interval();
    events.on_alive = [&](const actors::EngineSnapshot& engine) {
        notifier.alive();
        if (was_ready) notifier.status(serving_text(engine));
    };
    events.on_failed = [&mailbox](const Error& error) { mailbox.failed(error); };
    events.on_stopped = [&mailbox] { mailbox.stopped(); };

    std::optional<EndGuard> end_guard;
    int exit_code = kClean;
    {
        SystemConfig config;
        caf::actor_system system(config);
        if (!has_sharing_scheduler(system)) {
            log_error("daemon", "the actor system did not take its scheduler policy");
            return kFailed;
        }
        {
            const actors::SupervisorActor root = system.spawn(
                actors::supervisor, std::make_shared<const actors::DaemonSettings>(std::move(settings)),
                std::static_pointer_cast<ClientPort>(port), events);
            wait_for_end(mailbox, root, notifier, drain_ms);
        }
        if (const auto failure = mailbox.failure()) {
            log_error("daemon", "failed: " + failure->to_string());
            exit_code = !was_ready && is_lasting(*failure) ? kBadConfigOrModel : kFailed;
            notifier.failed(exit_code, failure->to_string());
        }
        end_guard.emplace(exit_code);
    }
    log_info("daemon", "stopped");
    return exit_code;
}

}  // namespace pantheon::daemon

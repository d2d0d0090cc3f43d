#include "kernels/exec/thread_team.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace pantheon::kernels {
namespace {

// Longer than the gap between two ops of a step, much shorter than anything a human or a power meter notices.
constexpr std::chrono::microseconds kSpinTime{50};
constexpr int kSpinsPerClockRead = 64;

inline void cpu_relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    std::this_thread::yield();
#endif
}

double seconds_since(std::chrono::steady_clock::time_point from) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
}

/// One place where threads wait for a condition that others make true. The waiter announces itself before it
/// looks at the condition a last time, the signaller changes the condition before it looks for waiters; both
/// are sequentially consistent, so at least one of them sees the other and no wake-up is lost.
class WaitPoint {
  public:
    template <class Condition>
    void wait(const Condition& is_true) {
        const auto until = std::chrono::steady_clock::now() + kSpinTime;
        do {
            for (int i = 0; i < kSpinsPerClockRead; ++i) {
                if (is_true()) return;
                cpu_relax();
            }
        } while (std::chrono::steady_clock::now() < until);

        std::unique_lock lock(mutex_);
        n_parked_.fetch_add(1);
        parked_.wait(lock, is_true);
        n_parked_.fetch_sub(1);
    }

    /// To be called after the condition was changed with a sequentially consistent store.
    void signal() {
        if (n_parked_.load() == 0) return;
        // The lock makes sure that an announced waiter has reached its wait.
        std::lock_guard lock(mutex_);
        parked_.notify_all();
    }

  private:
    std::mutex mutex_;
    std::condition_variable parked_;
    std::atomic<int> n_parked_{0};
};

}  // namespace

struct ThreadTeam::Impl {
    explicit Impl(int n) {
        busy.resize(static_cast<std::size_t>(n));
        workers.reserve(static_cast<std::size_t>(n - 1));
        try {
            for (int thread = 1; thread < n; ++thread) workers.emplace_back([this, thread] { work(thread); });
        } catch (...) {  // the system has no more threads: end those that started
            stop();
            throw;
        }
    }
    ~Impl() { stop(); }

    void stop() {
        is_stopping = true;
        round.fetch_add(1);
        start.signal();
        for (std::thread& worker : workers) worker.join();
    }

    void work(int thread) {
        for (std::uint64_t seen = 0;; ++seen) {
            start.wait([&] { return round.load() != seen; });
            if (is_stopping) return;
            call(thread);
            if (n_working.fetch_sub(1) == 1) finish.signal();
        }
    }

    /// Between the barriers; meter and busy are the leader's outside of them.
    void call(int thread) {
        if (!meter) return fn(context, thread);
        const auto from = std::chrono::steady_clock::now();
        fn(context, thread);
        busy[static_cast<std::size_t>(thread)].seconds = seconds_since(from);
    }

    struct alignas(128) Busy {
        double seconds = 0;
    };
    std::vector<Busy> busy;  // of the last round, by thread
    TeamMeter* meter = nullptr;
    std::vector<std::thread> workers;
    WaitPoint start;
    WaitPoint finish;
    std::atomic<std::uint64_t> round{0};  // publishes what stands below
    std::atomic<int> n_working{0};
    bool is_stopping = false;
    void (*fn)(void*, int) = nullptr;
    void* context = nullptr;
};

ThreadTeam::ThreadTeam(int n_threads) {
    assert(n_threads >= 1);
    impl_ = std::make_unique<Impl>(n_threads);
}

ThreadTeam::~ThreadTeam() = default;

int ThreadTeam::n_threads() const {
    return static_cast<int>(impl_->workers.size()) + 1;
}

void ThreadTeam::run(void (*fn)(void* context, int thread), void* context) {
    Impl& team = *impl_;
    const auto from = team.meter ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point{};
    team.fn = fn;
    team.context = context;
    if (!team.workers.empty()) {
        team.n_working.store(static_cast<int>(team.workers.size()));
        team.round.fetch_add(1);
        team.start.signal();
    }
    team.call(0);
    if (!team.workers.empty()) team.finish.wait([&] { return team.n_working.load() == 0; });
    if (!team.meter) return;
    ++team.meter->n_rounds;
    team.meter->round_seconds += seconds_since(from);
    for (const Impl::Busy& busy : team.busy) team.meter->busy_seconds += busy.seconds;
}

void ThreadTeam::set_meter(TeamMeter* meter) {
    impl_->meter = meter;
}

void ThreadTeam::run_ranges(std::int64_t n, std::int64_t grain, RangeFn fn, void* context) {
    if (n <= 0) return;
    grain = std::max<std::int64_t>(grain, 1);
    if (impl_->workers.empty() || n <= grain) return fn(context, 0, 0, n);

    struct Ranges {
        std::int64_t n, grain;
        RangeFn fn;
        void* context;
        std::atomic<std::int64_t> next{0};
    } ranges{n, grain, fn, context};
    run(
        [](void* shared, int thread) {
            Ranges& r = *static_cast<Ranges*>(shared);
            for (;;) {
                const std::int64_t begin = r.next.fetch_add(r.grain, std::memory_order_relaxed);
                if (begin >= r.n) return;
                r.fn(r.context, thread, begin, std::min(begin + r.grain, r.n));
            }
        },
        &ranges);
}

}  // namespace pantheon::kernels

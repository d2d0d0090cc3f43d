// A fixed team of threads that run one function together and meet again. Waiting threads spin briefly, then
// park.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace pantheon::kernels {

/// What a team has done; sums.
struct TeamMeter {
    std::int64_t n_rounds = 0;  // calls of all threads, each of which ends in a barrier
    double round_seconds = 0;   // of wall from call to barrier
    double busy_seconds = 0;    // of all threads inside their functions
};

class ThreadTeam {
  public:
    /// n_threads ≥ 1 counts the caller, which works too: n_threads − 1 threads are started.
    explicit ThreadTeam(int n_threads);
    ~ThreadTeam();
    ThreadTeam(const ThreadTeam&) = delete;
    ThreadTeam& operator=(const ThreadTeam&) = delete;

    int n_threads() const;

    /// Calls fn(context, thread) once on each thread, thread in 0 … n_threads − 1, and returns when all have
    /// returned. One caller at a time. fn must not throw and must not call run() again.
    void run(void (*fn)(void* context, int thread), void* context);

    /// Counts into meter from now on, until it is set to null. Not while the team runs.
    void set_meter(TeamMeter* meter);

    /// Splits [0, n) into items that threads take in grains of `grain`; body(begin, end) for each, or
    /// body(thread, begin, end) for a body that uses per-thread scratch. The split never changes what is
    /// computed for an item.
    template <class Body>
    void parallel_for(std::int64_t n, std::int64_t grain, Body&& body);

  private:
    struct Impl;
    using RangeFn = void (*)(void* context, int thread, std::int64_t begin, std::int64_t end);
    void run_ranges(std::int64_t n, std::int64_t grain, RangeFn fn, void* context);
    std::unique_ptr<Impl> impl_;
};

template <class Body>
void ThreadTeam::parallel_for(std::int64_t n, std::int64_t grain, Body&& body) {
    using Callable = std::remove_reference_t<Body>;
    run_ranges(
        n, grain,
        [](void* context, int thread, std::int64_t begin, std::int64_t end) {
            Callable& call = *static_cast<Callable*>(context);
            if constexpr (std::is_invocable_v<Callable&, int, std::int64_t, std::int64_t>)
                call(thread, begin, end);
            else
                call(begin, end);
        },
        &body);
}

}  // namespace pantheon::kernels

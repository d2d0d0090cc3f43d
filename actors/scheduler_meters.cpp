// What the scheduler measures of its own work: what steps take, which sizes the next ones, and how long
// streams wait.
#include <algorithm>

#include "actors/scheduler.h"

namespace pantheon::actors {

void SchedulerState::measure(const StepDone& done, Clock::time_point now) {
    last_step = now;
    pacer.observe(step_shape, {done.elapsed_ms, done.longest_unit_ms}, settings->limits.max_gap);
    if (done.n_rows > 0) step_rows.add(static_cast<double>(done.n_rows));
    step_seconds.add(done.elapsed_ms / 1000);
}

void SchedulerState::add_meters(EngineSnapshot& snapshot) const {
    const Clock::time_point now = Clock::now();
    // A stream that waits now may be the one that waits longest.
    std::chrono::milliseconds pause{0};
    for (const auto& sequence : seats)
        if (sequence) pause = std::max(pause, sequence->gap_clock.pause(now).value_or(pause));
    snapshot.longest_gap_ms = std::max(gaps.since_start(), pause).count();
    snapshot.longest_gap_last_minute_ms = std::max(gaps.last_minute(now), pause).count();
    snapshot.step_rows = step_rows;
    snapshot.step_seconds = step_seconds;
    snapshot.n_ended_without_credit = n_ended_without_credit;
}

}  // namespace pantheon::actors

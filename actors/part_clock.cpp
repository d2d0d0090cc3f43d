#include "actors/part_clock.h"

#include <algorithm>

namespace pantheon::actors {
namespace {

double ms(PartClock::Instant::duration time) {
    return std::chrono::duration<double, std::milli>(time).count();
}

}  // namespace

void PartClock::unit_done(Instant now, model::RunUnit unit) {
    const double took = ms(now - last_);
    last_ = now;
    latest(unit) = took;
    if (unit == model::RunUnit::attention || unit == model::RunUnit::head) return;
    second_longest_ = std::max(second_longest_, std::min(longest_, took));
    longest_ = std::max(longest_, took);
}

bool PartClock::is_part_over(model::RunUnit next) const {
    const double known = latest(next);
    return ms(last_ - begin_) + (known > 0 ? known : std::ranges::max(latest_)) > part_ms_;
}

double PartClock::longest_unit_ms() const {
    return std::max(second_longest_, latest(model::RunUnit::head));
}

}  // namespace pantheon::actors

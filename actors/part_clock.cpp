#include "actors/part_clock.h"

#include <algorithm>
#include <cstddef>
#include <functional>

namespace pantheon::actors {
namespace {

constexpr std::size_t kPeriod = 8;  // units: every fourth layer is an attention layer

double ms(PartClock::Instant::duration time) {
    return std::chrono::duration<double, std::milli>(time).count();
}

}  // namespace

void PartClock::unit_done(Instant now) {
    units_.push_back(ms(now - last_));
    last_ = now;
}

bool PartClock::is_part_over() const {
    const std::size_t n = units_.size();
    const double next = n >= kPeriod ? units_[n - kPeriod] : n >= 2 ? units_[n - 2] : units_.back();
    return ms(last_ - begin_) + next > part_ms_;
}

double PartClock::longest_unit_ms() const {
    if (units_.size() < 3) return *std::max_element(units_.begin(), units_.end());
    std::vector<double> units(units_.begin(), units_.end() - 1);
    std::nth_element(units.begin(), units.begin() + 1, units.end(), std::greater<>());
    return std::max(units[1], units_.back());
}

}  // namespace pantheon::actors

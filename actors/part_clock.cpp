#include "actors/part_clock.h"

#include <algorithm>
#include <cstddef>

namespace pantheon::actors {
namespace {

double ms(PartClock::Instant::duration time) {
    return std::chrono::duration<double, std::milli>(time).count();
}

double median(std::vector<double> values) {
    if (values.empty()) return 0;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

}  // namespace

void PartClock::unit_done(Instant now) {
    units_.push_back(ms(now - last_));
    last_ = now;
}

bool PartClock::is_part_over() const {
    const double next = units_.size() > 1 ? units_[units_.size() - 2] : units_.back();
    return ms(last_ - begin_) + next > part_ms_;
}

double PartClock::longest_unit_ms() const {
    std::vector<double> of_kind[2];
    for (std::size_t i = 0; i + 1 < units_.size(); ++i) of_kind[i % 2].push_back(units_[i]);
    return std::max({median(of_kind[0]), median(of_kind[1]), units_.back()});
}

}  // namespace pantheon::actors

// When a run that a die takes in parts pauses.
#pragma once

#include <array>
#include <chrono>

#include "model/executor.h"

namespace pantheon::actors {

/// Of one run. A part ends before the unit that would end past its time; the last of the same kind tells what
/// that takes, or the longest of any where there was none. A part has one unit at least.
class PartClock {
  public:
    using Instant = std::chrono::steady_clock::time_point;
    void begin_part(Instant now, double part_ms) {
        begin_ = last_ = now;
        part_ms_ = part_ms;
    }
    void unit_done(Instant now, model::RunUnit unit);
    bool is_part_over(model::RunUnit next) const;
    /// Of the run, which is done, and of the units that have all its rows, which attention need not: the
    /// second longest, as what else happens on the machine may have lengthened one, or its head, which comes
    /// once.
    double longest_unit_ms() const;

  private:
    static constexpr std::size_t kKinds = static_cast<std::size_t>(model::RunUnit::head) + 1;
    double& latest(model::RunUnit unit) { return latest_[static_cast<std::size_t>(unit)]; }
    double latest(model::RunUnit unit) const { return latest_[static_cast<std::size_t>(unit)]; }

    Instant begin_, last_;
    double part_ms_ = 0;
    std::array<double, kKinds> latest_{};      // what the last of each kind took; 0: there was none
    double longest_ = 0, second_longest_ = 0;  // of GDN mixers and of experts
};

}  // namespace pantheon::actors

// When a run that a die takes in parts pauses.
#pragma once

#include <chrono>
#include <vector>

namespace pantheon::actors {

/// Of one run. A part ends before the unit that would end past its time, as far as those before tell: mixers
/// and experts take turns, so a unit takes about as long as the one before the last, or better, as the one of
/// four layers before, since attention takes the longer the longer its context is. A part has one unit at
/// least.
class PartClock {
  public:
    using Instant = std::chrono::steady_clock::time_point;
    void begin_part(Instant now, double part_ms) {
        begin_ = last_ = now;
        part_ms_ = part_ms;
    }
    void unit_done(Instant now);
    bool is_part_over() const;
    /// Of the run, which is done: the second longest, as what else happens on the machine may have lengthened
    /// one, or its head, which comes once.
    double longest_unit_ms() const;

  private:
    Instant begin_, last_;
    double part_ms_ = 0;
    std::vector<double> units_;  // what each took
};

}  // namespace pantheon::actors

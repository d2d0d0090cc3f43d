// How many values fell below which bounds, as Prometheus counts them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace pantheon::actors {

/// kBounds: ascending upper bounds; what is above the last counts in the total alone.
template <const auto& kBounds>
class Histogram {
  public:
    void add(double value) {
        for (std::size_t i = 0; i < kBounds.size(); ++i)
            if (value <= kBounds[i]) ++at_most_[i];
        ++count_;
        sum_ += value;
    }
    static constexpr std::size_t n_bounds() { return kBounds.size(); }
    static double bound(std::size_t i) { return kBounds[i]; }
    /// Values ≤ bound(i).
    std::uint64_t at_most(std::size_t i) const { return at_most_[i]; }
    std::uint64_t count() const { return count_; }
    double sum() const { return sum_; }

  private:
    std::array<std::uint64_t, kBounds.size()> at_most_{};
    std::uint64_t count_ = 0;
    double sum_ = 0;
};

inline constexpr std::array<double, 10> kStepRowBounds{1, 2, 4, 8, 16, 32, 64, 128, 256, 512};
inline constexpr std::array<double, 12> kStepSecondBounds{0.002, 0.005, 0.01, 0.02, 0.05, 0.1,
                                                          0.2,   0.3,   0.5,  1,    2,    10};
using StepRows = Histogram<kStepRowBounds>;
using StepSeconds = Histogram<kStepSecondBounds>;

}  // namespace pantheon::actors

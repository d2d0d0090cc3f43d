#include "actors/step_pacer.h"

namespace pantheon::actors {
namespace {

constexpr double kKept = 0.85;  // of the weight of what was measured before
constexpr std::int64_t kFirstRows =
    8;  // nothing is measured yet: few, so that a slow die shows itself cheaply
constexpr double kTrustedSpread = 0.02;  // of the rows' mean square: less tells nothing about a slope
constexpr double kLeastRowShare = 0.25;  // of a step's time is its rows' fault, however flat the slope looks
// Of max_gap. A step of few rows may take longer than those before it: their experts are others.
constexpr double kAim = 0.9;
constexpr double kShortStepMs = 10;  // such a chunk nobody notices; turns would only make work

}  // namespace

void ChunkSizer::observe(std::int64_t n_rows, double elapsed_ms) {
    if (n_rows <= 0 || elapsed_ms <= 0) return;
    const auto rows = static_cast<double>(n_rows);
    n_ = kKept * n_ + 1;
    rows_ = kKept * rows_ + rows;
    ms_ = kKept * ms_ + elapsed_ms;
    rows_rows_ = kKept * rows_rows_ + rows * rows;
    rows_ms_ = kKept * rows_ms_ + rows * elapsed_ms;
    largest_ = std::max(kKept * largest_, rows);
}

std::int64_t ChunkSizer::rows(double step_ms) const {
    if (n_ == 0) return kFirstRows;
    const double spread = n_ * rows_rows_ - rows_ * rows_;
    double per_row = ms_ / rows_;  // as long as all steps were alike: everything is the rows' fault
    double per_step = 0;
    if (spread > kTrustedSpread * n_ * rows_rows_) {
        const double slope = (n_ * rows_ms_ - rows_ * ms_) / spread;
        if (slope > 0 && slope < per_row) {
            per_row = std::max(slope, kLeastRowShare * per_row);
            per_step = (ms_ - per_row * rows_) / n_;
        }
    }
    constexpr double kRounding = 1e-6;  // of the sums: what fits exactly fits
    const double fitting = (step_ms - per_step) / per_row + kRounding;
    const double most = std::min(static_cast<double>(kMaxChunk),
                                 std::max(growth_ * largest_, static_cast<double>(kFirstRows)));
    return static_cast<std::int64_t>(std::clamp(fitting, 1.0, most));
}

void PrefillTurns::decoded(double elapsed_ms) {
    decode_ms_ = decode_ms_ == 0 ? elapsed_ms : 0.7 * decode_ms_ + 0.3 * elapsed_ms;
    spend(0, elapsed_ms);
}

void PrefillTurns::read(double elapsed_ms, bool has_decode_rows) {
    if (elapsed_ms < kShortStepMs) return;
    const double reading_ms = has_decode_rows ? std::max(0.0, elapsed_ms - decode_ms_) : elapsed_ms;
    spend(reading_ms, elapsed_ms);
}

/// What was paid beyond the debt counts for the next chunk, one step's share of it: time in which nobody read
/// is gone.
void PrefillTurns::spend(double reading_ms, double elapsed_ms) {
    const double share_ms = kShare * elapsed_ms;
    owed_ms_ = std::max(-share_ms, owed_ms_ + reading_ms - share_ms);
}

double PrefillTurns::step_ms(std::chrono::milliseconds max_gap) const {
    const auto gap_ms = static_cast<double>(max_gap.count());
    return std::max(kAim * gap_ms, std::min(decode_ms_ / (1 - kShare), decode_ms_ + gap_ms));
}

ChunkLimits StepPacer::limits(std::int64_t n_decode_rows, int n_decoding,
                              std::chrono::milliseconds max_gap) const {
    if (n_decoding > 0 && !turns_.may_read()) return {0, 0};
    const double step_ms = n_decoding > 0 ? turns_.step_ms(max_gap)
                                          : static_cast<double>(std::max(max_gap, kLongestAlone).count());
    const Pace& pace = n_decoding > 0 ? beside_ : alone_;
    const auto rows = [&](const ChunkSizer& sizer) {
        return std::max<std::int64_t>(sizer.rows(step_ms) - n_decode_rows, 1);
    };
    return {rows(pace.prompt), rows(pace.score)};
}

void StepPacer::observe(const StepShape& shape, double elapsed_ms) {
    if (shape.n_read_rows == 0) return turns_.decoded(elapsed_ms);
    Pace& pace = shape.n_decoding > 0 ? beside_ : alone_;
    (shape.is_score ? pace.score : pace.prompt).observe(shape.n_decode_rows + shape.n_read_rows, elapsed_ms);
    if (shape.n_decoding == 0) return turns_.read_alone();
    turns_.read(elapsed_ms, shape.n_decode_rows > 0);
}

}  // namespace pantheon::actors

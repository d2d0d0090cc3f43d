#include "actors/step_pacer.h"

namespace pantheon::actors {
namespace {

constexpr double kKept = 0.85;           // of the weight of what was measured before
constexpr double kTrustedSpread = 0.02;  // of the rows' mean square: less tells nothing about a slope
constexpr double kLeastRowShare = 0.25;  // of a step's time is its rows' fault, however flat the slope looks
// Of max_gap. A step of few rows may take longer than those before it: their experts are others.
constexpr double kAim = 0.85;
// Of a part beside streams: it has one unit at least, however long that turns out.
constexpr double kUnitOfPart = 0.7;
// A step counts for no more: times max_gap or, where that is more, a step of the streams.
constexpr double kMostCounted = 4;
constexpr double kShortStepMs = 10;  // a chunk in such a step nobody notices; turns would only make work

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

std::int64_t ChunkSizer::rows(double ms) const {
    if (n_ == 0) return n_first_;
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
    const double fitting = (ms - per_step) / per_row + kRounding;
    const double most =
        std::min(static_cast<double>(kMaxChunk), std::max(growth_ * largest_, static_cast<double>(n_first_)));
    return static_cast<std::int64_t>(std::clamp(fitting, 1.0, most));
}

void PrefillTurns::decoded(double elapsed_ms) {
    decode_ms_ = decode_ms_ == 0 ? elapsed_ms : 0.7 * decode_ms_ + 0.3 * elapsed_ms;
    spend(0, elapsed_ms);
    has_decoded_ = true;
}

void PrefillTurns::read(double elapsed_ms, bool has_decode_rows) {
    if (has_decode_rows && elapsed_ms < kShortStepMs) return;
    const double reading_ms = has_decode_rows ? std::max(0.0, elapsed_ms - decode_ms_) : elapsed_ms;
    spend(reading_ms, elapsed_ms);
    has_decoded_ = has_decode_rows;
}

/// What was paid beyond the debt counts for the next chunk, but for no more than two steps: time in which
/// nobody read is gone.
void PrefillTurns::spend(double reading_ms, double elapsed_ms) {
    const double share_ms = kShare * elapsed_ms;
    owed_ms_ = std::max(-2 * share_ms, owed_ms_ + reading_ms - share_ms);
}

double PrefillTurns::step_ms(std::chrono::milliseconds max_gap) const {
    const auto gap_ms = static_cast<double>(max_gap.count());
    return std::max(kAim * gap_ms, std::min(decode_ms_ / (1 - kShare), decode_ms_ + gap_ms));
}

double PrefillTurns::part_ms(std::chrono::milliseconds max_gap) const {
    const double usual = usual_part_ms(max_gap);
    const double unused = std::max(0.0, -owed_ms_ - kShare * decode_ms_) / (1 - kShare);
    return std::min(usual + unused, std::max(usual, static_cast<double>(max_gap.count())));
}

double PrefillTurns::most_ms(std::chrono::milliseconds max_gap) const {
    return kMostCounted * std::max(static_cast<double>(max_gap.count()), decode_ms_);
}

ReadLimits StepPacer::limits(std::int64_t n_decode_rows, int n_decoding,
                             std::chrono::milliseconds max_gap) const {
    if (n_decoding > 0 && !turns_.may_read()) return {};
    const double alone_ms = kAim * static_cast<double>(max_gap.count());
    const double step_ms = n_decoding > 0 ? turns_.step_ms(max_gap) : alone_ms;
    ReadLimits limits;
    limits.part_ms = n_decoding > 0 ? turns_.part_ms(max_gap) : alone_ms;
    const auto beside = [&](const Pace& pace) {
        return std::max<std::int64_t>(pace.steps.rows(step_ms) - n_decode_rows, 1);
    };
    const auto in_parts = [&](const Pace& pace) {
        return n_decoding > 0 ? std::clamp(pace.units.rows(kUnitOfPart * turns_.usual_part_ms(max_gap)),
                                           kMinRun, kMaxRunBeside)
                              : std::max(pace.units.rows(static_cast<double>(max_gap.count())), kMinRun);
    };
    limits.beside = {beside(prompt_), beside(score_)};
    limits.in_parts = {in_parts(prompt_), in_parts(score_)};
    return limits;
}

void StepPacer::observe(const StepShape& shape, const StepTime& time, std::chrono::milliseconds max_gap) {
    const double counted_ms = std::min(time.elapsed_ms, turns_.most_ms(max_gap));
    if (shape.n_read_rows == 0) return turns_.decoded(counted_ms);
    Pace& pace = shape.is_score ? score_ : prompt_;
    if (time.longest_unit_ms > 0) pace.units.observe(shape.n_read_rows, time.longest_unit_ms);
    // A run in one part is as good as a step.
    if (!shape.is_part || (shape.begins && time.longest_unit_ms > 0))
        pace.steps.observe(shape.n_decode_rows + shape.n_read_rows, time.elapsed_ms);
    if (shape.n_decoding == 0) return turns_.read_alone();
    turns_.read(counted_ms, shape.n_decode_rows > 0);
}

}  // namespace pantheon::actors

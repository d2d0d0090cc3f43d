#include "actors/step_planner.h"

#include <algorithm>
#include <optional>

namespace pantheon::actors {
namespace {

/// Rows that may be fed now: everything, or all but the last token while that must not be sampled from.
std::int64_t feedable_end(const SlotProgress& s) {
    return s.may_sample ? s.n_known : s.n_known - 1;
}

bool precedes(const SlotProgress& a, const SlotProgress& b) {
    return a.priority != b.priority ? a.priority > b.priority : a.ticket < b.ticket;
}

}  // namespace

std::vector<PlannedRows> plan_step(std::span<const SlotProgress> slots, std::int64_t chunk) {
    std::vector<PlannedRows> plan;
    const SlotProgress* prefill = nullptr;
    for (const SlotProgress& s : slots) {
        const std::int64_t n_pending = feedable_end(s) - s.n_fed;
        if (n_pending <= 0) continue;
        if (n_pending == 1 && !s.is_score && s.may_sample) {
            plan.push_back({s.slot, s.n_fed, s.n_fed + 1, true});
        } else if (!prefill || precedes(s, *prefill)) {
            prefill = &s;
        }
    }
    if (prefill) {
        const std::int64_t end = std::min(
            {feedable_end(*prefill), prefill->n_fed + std::max<std::int64_t>(chunk, 1), prefill->stop});
        plan.push_back({prefill->slot, prefill->n_fed, end, end == prefill->n_known && !prefill->is_score});
    }
    return plan;
}

void ChunkSizer::observe(std::int64_t n_rows, double elapsed_ms) {
    if (n_rows <= 0 || elapsed_ms <= 0) return;
    constexpr double kKept = 0.85;  // of the weight of what was measured before
    const auto rows = static_cast<double>(n_rows);
    n_ = kKept * n_ + 1;
    rows_ = kKept * rows_ + rows;
    ms_ = kKept * ms_ + elapsed_ms;
    rows_rows_ = kKept * rows_rows_ + rows * rows;
    rows_ms_ = kKept * rows_ms_ + rows * elapsed_ms;
}

std::int64_t ChunkSizer::chunk(std::chrono::milliseconds max_gap) const {
    constexpr std::int64_t kFirstChunk =
        8;  // nothing is measured yet: small, so that a slow die shows itself cheaply
    if (n_ == 0) return kFirstChunk;
    const double spread = n_ * rows_rows_ - rows_ * rows_;
    double per_row = ms_ / rows_;  // as long as all steps were alike: everything is the rows' fault
    double per_step = 0;
    if (spread > 1e-3 * n_ * rows_rows_) {
        const double slope = (n_ * rows_ms_ - rows_ * ms_) / spread;
        const double base = (ms_ - slope * rows_) / n_;
        if (slope > 0 && base > 0) {
            per_row = slope;
            per_step = base;
        }
    }
    const double rows =
        std::min((static_cast<double>(max_gap.count()) - per_step) / per_row, static_cast<double>(kMaxChunk));
    constexpr double kRounding = 1e-6;  // of the sums: what fits exactly fits
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(rows + kRounding), 1, kMaxChunk);
}

}  // namespace pantheon::actors

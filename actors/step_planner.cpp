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
    const double sample = elapsed_ms / static_cast<double>(n_rows);
    ms_per_row_ = ms_per_row_ == 0 ? sample : 0.75 * ms_per_row_ + 0.25 * sample;
}

std::int64_t ChunkSizer::chunk(std::chrono::milliseconds max_gap) const {
    constexpr std::int64_t kFirstChunk =
        8;  // nothing is measured yet: small, so that a slow die shows itself cheaply
    if (ms_per_row_ == 0) return kFirstChunk;
    const double rows = static_cast<double>(max_gap.count()) / ms_per_row_;
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(rows), 1, kMaxChunk);
}

}  // namespace pantheon::actors

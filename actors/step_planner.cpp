#include "actors/step_planner.h"

#include <algorithm>

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

bool is_decode_row(const SlotProgress& slot) {
    return slot.may_sample && !slot.is_score && slot.n_known - slot.n_fed == 1;
}

std::vector<PlannedRows> plan_step(std::span<const SlotProgress> slots, const ChunkLimits& chunk) {
    std::vector<PlannedRows> plan;
    const SlotProgress* prefill = nullptr;
    for (const SlotProgress& s : slots) {
        const std::int64_t n_pending = feedable_end(s) - s.n_fed;
        if (n_pending <= 0) continue;
        if (is_decode_row(s)) {
            plan.push_back({s.slot, s.n_fed, s.n_fed + 1, true});
        } else if ((s.is_score ? chunk.score : chunk.prompt) > 0 && (!prefill || precedes(s, *prefill))) {
            prefill = &s;
        }
    }
    if (prefill) {
        const std::int64_t n_rows = prefill->is_score ? chunk.score : chunk.prompt;
        const std::int64_t end = std::min({feedable_end(*prefill), prefill->n_fed + n_rows, prefill->stop});
        plan.push_back({prefill->slot, prefill->n_fed, end, end == prefill->n_known && !prefill->is_score});
    }
    return plan;
}

}  // namespace pantheon::actors

#include "actors/step_planner.h"

#include <algorithm>

namespace pantheon::actors {
namespace {

/// Rows that may be fed now: everything, or all but the last token while that must not be sampled from.
std::int64_t feedable_end(const SlotProgress& s) {
    return s.may_sample ? s.n_known : s.n_known - 1;
}

bool precedes(const SlotProgress& a, const SlotProgress& b) {
    if (a.priority != b.priority) return a.priority > b.priority;
    return a.has_reply != b.has_reply ? a.has_reply : a.ticket < b.ticket;
}

}  // namespace

bool is_decode_row(const SlotProgress& slot) {
    return slot.may_sample && !slot.is_score && slot.n_known - slot.n_fed == 1;
}

PlannedStep plan_step(std::span<const SlotProgress> slots, const ReadLimits& limits) {
    PlannedStep step;
    const SlotProgress* reader = nullptr;
    for (const SlotProgress& s : slots) {
        if (!s.begun && feedable_end(s) <= s.n_fed) continue;
        if (!s.begun && is_decode_row(s)) {
            step.rows.push_back({s.slot, s.n_fed, s.n_fed + 1, true});
        } else if ((limits.beside.of(s) > 0 || limits.in_parts.of(s) > 0) &&
                   (!reader || precedes(s, *reader))) {
            reader = &s;
        }
    }
    if (!reader) return step;
    if (reader->begun) return {{*reader->begun}, limits.part_ms, 0};
    const std::int64_t end = std::min(feedable_end(*reader), reader->stop);
    const std::int64_t n_beside = limits.beside.of(*reader);
    const auto rows_to = [&](std::int64_t n_rows) {
        const std::int64_t last = std::min(end, reader->n_fed + n_rows);
        return PlannedRows{reader->slot, reader->n_fed, last, last == reader->n_known && !reader->is_score};
    };
    if (end - reader->n_fed > n_beside && n_beside < kWorthBeside)
        return {{rows_to(limits.in_parts.of(*reader))}, limits.part_ms, 0};
    step.rows.push_back(rows_to(n_beside));
    return step;
}

}  // namespace pantheon::actors

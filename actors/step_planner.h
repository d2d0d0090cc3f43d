// Which rows the next step carries. A pure function of the slots' progress, tested by table.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "runtime/base/ids.h"

namespace pantheon::actors {

/// What planning needs to know of a busy slot.
struct SlotProgress {
    SlotId slot;
    TicketId ticket;  // lower: older
    std::int32_t priority = 0;
    std::int64_t n_known = 0;  // tokens of prompt and reply so far
    std::int64_t n_fed = 0;    // of these, evaluated on the die; < n_known unless there is nothing to do
    bool may_sample = true;    // false: the next token must not be drawn yet (credit, verdict, pause)
    bool is_score = false;
    std::int64_t stop = std::numeric_limits<std::int64_t>::max();  // > n_fed: no run goes past this index
};

struct PlannedRows {
    SlotId slot;
    std::int64_t begin = 0, end = 0;  // token indices [begin, end) of the sequence
    bool samples = false;             // the last row's logits are drawn from
};

/// Rows that a step may read of one prompt, or of one score job. 0: none, the step decodes only.
struct ChunkLimits {
    std::int64_t prompt = 0, score = 0;
};

/// A row that decodes: the only pending one of a slot, and drawn from.
bool is_decode_row(const SlotProgress& slot);

/// All slots with exactly one pending row decode, and at most one slot with more prefills up to its chunk:
/// the one of the highest priority, then the oldest; its rows end at its `stop` at the latest. A slot that
/// may not sample is fed up to its last token and no further.
std::vector<PlannedRows> plan_step(std::span<const SlotProgress> slots, const ChunkLimits& chunk);

}  // namespace pantheon::actors

// Which rows the next step carries. A pure function of the slots' progress, tested by table.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "runtime/base/ids.h"

namespace pantheon::actors {

struct PlannedRows {
    SlotId slot;
    std::int64_t begin = 0, end = 0;  // token indices [begin, end) of the sequence
    bool samples = false;             // the last row's logits are drawn from
};

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
    bool has_reply = false;                                        // tokens of it are out
    std::optional<PlannedRows> begun;                              // a run in parts that is not done
};

/// Rows of one prompt, or of one score job.
struct ChunkRows {
    std::int64_t prompt = 0, score = 0;
    std::int64_t of(const SlotProgress& slot) const { return slot.is_score ? score : prompt; }
};

/// What a step may read. All 0: nothing, it decodes only.
struct ReadLimits {
    ChunkRows beside;    // whole, together with the rows that decode
    ChunkRows in_parts;  // as a run in parts, each a step of its own
    double part_ms = 0;  // and about so long
};

struct PlannedStep {
    std::vector<PlannedRows> rows;
    double part_ms = 0;  // not 0: a part of a run, which is all of it
    int n_decoding = 0;  // who could decode or soon can, in this step or not
};

/// Together with rows that decode a chunk of so many reads the weights about as well as one of more.
inline constexpr std::int64_t kWorthBeside = 128;

/// A row that decodes: the only pending one of a slot, and drawn from.
bool is_decode_row(const SlotProgress& slot);

/// All slots with exactly one pending row decode, and at most one slot with more reads: the one of the
/// highest priority, of these one whose reply has begun, then the oldest; its rows end at its `stop` at the
/// latest. It reads beside the others when all that is left fits there, or much does; else a run in parts
/// begins or goes on, and nobody decodes in this step. A slot that may not sample is fed up to its last token
/// and no further.
PlannedStep plan_step(std::span<const SlotProgress> slots, const ReadLimits& limits);

}  // namespace pantheon::actors

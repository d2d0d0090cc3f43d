// Which rows the next step carries. A pure function of the slots' progress, tested by table.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
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

/// All slots with exactly one pending row decode, and at most one slot with more prefills up to `chunk` rows:
/// the one of the highest priority, then the oldest; its rows end at its `stop` at the latest. A slot that
/// may not sample is fed up to its last token and no further.
std::vector<PlannedRows> plan_step(std::span<const SlotProgress> slots, std::int64_t chunk);

/// Rows of prefill that fit into `max_gap` at the measured pace, 1 … kMaxChunk.
inline constexpr std::int64_t kMaxChunk = 512;
class ChunkSizer {
  public:
    /// n_rows took elapsed_ms.
    void observe(std::int64_t n_rows, double elapsed_ms);
    std::int64_t chunk(std::chrono::milliseconds max_gap) const;

  private:
    double ms_per_row_ = 0;  // exponential average; 0: not measured
};

}  // namespace pantheon::actors

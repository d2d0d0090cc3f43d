// Which rows the next step carries. A pure function of the slots' progress, tested by table.
#pragma once

#include <chrono>
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

/// All slots with exactly one pending row decode, and at most one slot with more prefills up to `chunk` rows:
/// the one of the highest priority, then the oldest; its rows end at its `stop` at the latest. A slot that
/// may not sample is fed up to its last token and no further.
std::vector<PlannedRows> plan_step(std::span<const SlotProgress> slots, std::int64_t chunk);

/// Rows of prefill that fit into `max_gap` at the measured pace, 1 … kMaxChunk. A step takes some time
/// whatever it carries, since all weights are read once, and some for each row: both are fitted to what was
/// measured last.
inline constexpr std::int64_t kMaxChunk = 512;
class ChunkSizer {
  public:
    /// n_rows took elapsed_ms.
    void observe(std::int64_t n_rows, double elapsed_ms);
    std::int64_t chunk(std::chrono::milliseconds max_gap) const;

  private:
    // Exponentially weighted sums over the steps: of 1, rows, ms, rows², rows × ms.
    double n_ = 0, rows_ = 0, ms_ = 0, rows_rows_ = 0, rows_ms_ = 0;
};

/// The longest pause between two tokens of a stream that the daemon is to blame for, not its client. One
/// clock a stream; what all of them have seen is gathered by who owns them.
class GapClock {
  public:
    using Time = std::chrono::steady_clock::time_point;
    /// A token was accepted; the pause before it, if it counts.
    std::optional<std::chrono::milliseconds> token(Time now) {
        std::optional<std::chrono::milliseconds> gap;
        if (since_) gap = std::chrono::duration_cast<std::chrono::milliseconds>(now - *since_);
        since_ = now;
        return gap;
    }
    /// It is the client's turn, or the stream has been put aside: what passes from here on does not count.
    void stop() { since_.reset(); }
    bool is_running() const { return since_.has_value(); }
    /// The daemon may go on.
    void start(Time now) { since_ = now; }

  private:
    std::optional<Time> since_;
};

}  // namespace pantheon::actors

// How much of a prompt the next step may read: what keeps the pauses of streams short and still serves the
// newcomer. Plain classes that are told what steps took, tested by table.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include "actors/step_planner.h"

namespace pantheon::actors {

/// Rows that fit into a given time at the measured pace, 1 … kMaxChunk. A step takes some time whatever it
/// carries, since all weights are read once, and some for each row: both are fitted to what was measured
/// last. What was never seen is not trusted far.
inline constexpr std::int64_t kMaxChunk = 512;
class ChunkSizer {
  public:
    /// n_first: rows when nothing is measured yet. growth: how far what was never seen is trusted, in times
    /// of the most rows lately.
    ChunkSizer(std::int64_t n_first, double growth) : n_first_(n_first), growth_(growth) {}
    /// n_rows took elapsed_ms.
    void observe(std::int64_t n_rows, double elapsed_ms);
    std::int64_t rows(double ms) const;

  private:
    // Exponentially weighted sums over the steps: of 1, rows, ms, rows², rows × ms.
    double n_ = 0, rows_ = 0, ms_ = 0, rows_rows_ = 0, rows_ms_ = 0;
    double largest_ = 0;  // rows, forgotten as slowly
    std::int64_t n_first_;
    double growth_;
};

/// Shares the die's time between streams and the prompt that is read: the prompt gets kShare of it. What a
/// step with a chunk took longer than one without is owed to the streams, which then decode alone until it is
/// paid back. So streams keep 1 − kShare of their throughput and a newcomer needs 1 / kShare of its time
/// alone, whatever a step takes that was not held up (most_ms).
class PrefillTurns {
  public:
    static constexpr double kShare = 0.37;
    /// A step without any rows of a prompt.
    void decoded(double elapsed_ms);
    /// A step with a chunk of a prompt while streams were decoding. has_decode_rows: with rows of theirs;
    /// they may have been waiting for a slot's word.
    void read(double elapsed_ms, bool has_decode_rows);
    /// A step with a chunk of a prompt and nobody who decodes.
    void read_alone() {
        owed_ms_ = 0;
        has_decoded_ = true;
    }
    bool may_read() const { return has_decoded_ && owed_ms_ <= 0; }
    /// How long a step with a chunk should take. Most of max_gap, unless that leaves next to nothing beside
    /// the streams' own rows: then enough for the prompt's share, at most max_gap more than without it.
    double step_ms(std::chrono::milliseconds max_gap) const;
    /// How long a part of a run should take, between two steps of the streams: the rest of that.
    double usual_part_ms(std::chrono::milliseconds max_gap) const { return step_ms(max_gap) - decode_ms_; }
    /// How long the next may take: more, up to max_gap, where those before came to less than the prompt's
    /// share.
    double part_ms(std::chrono::milliseconds max_gap) const;
    /// What a step is taken to have lasted at most. One that took far longer than any should was held up, by
    /// a host that was suspended, say; that time is nobody's, and nobody shall wait for it to be paid back.
    double most_ms(std::chrono::milliseconds max_gap) const;

  private:
    void spend(double reading_ms, double elapsed_ms);

    double decode_ms_ = 0;     // of a step without a chunk, lately
    double owed_ms_ = 0;       // time to the streams; below 0: to the prompt, the share of two steps at most
    bool has_decoded_ = true;  // since the last step without rows of theirs
};

/// What a step carries, as far as its time is concerned.
struct StepShape {
    std::int64_t n_decode_rows = 0;
    std::int64_t n_read_rows = 0;  // of a prompt, or of a score job; of the whole run where it is in parts
    bool is_score = false;         // of which: logits of every row, another pace
    int n_decoding = 0;            // streams that wait for their next token, with a row in the step or not
    bool is_part = false;
    bool begins = false;  // the first part of a run
};
struct StepTime {
    double elapsed_ms = 0;
    double longest_unit_ms = 0;  // not 0: a run in parts is done; of all of it
};

/// Rows of a run in parts. Fewer would read about as many experts, whatever max_gap is; beside streams no
/// more, since a run holds its slot until it is done.
inline constexpr std::int64_t kMinRun = 32;
inline constexpr std::int64_t kMaxRunBeside = 256;

/// A prompt is read by the fewest passes over the weights: in runs of many rows, in parts so short that
/// streams decode in between and a cancel need not wait. Only what is short anyway is read beside rows that
/// decode.
class StepPacer {
  public:
    /// What may be read when n_decode_rows of n_decoding streams could decode; nothing while it is their
    /// turn.
    ReadLimits limits(std::int64_t n_decode_rows, int n_decoding, std::chrono::milliseconds max_gap) const;
    void observe(const StepShape& shape, const StepTime& time, std::chrono::milliseconds max_gap);

  private:
    struct Pace {
        // Of whole steps. Few rows more can be many experts more, and noise makes slopes look flat: a stream
        // would feel it.
        ChunkSizer steps{8, 1.3};
        // Of the longest unit of a run: so fine that an error is felt little.
        ChunkSizer units{64, 16};
    };
    Pace prompt_, score_;
    PrefillTurns turns_;
};

}  // namespace pantheon::actors

// How much of a prompt the next step may read beside the streams that decode: what keeps their pauses short
// and still serves the newcomer. Plain classes that are told what steps took, tested by table.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "actors/step_planner.h"

namespace pantheon::actors {

/// Rows that fit into a step of a given length at the measured pace, 1 … kMaxChunk. A step takes some time
/// whatever it carries, since all weights are read once, and some for each row: both are fitted to what was
/// measured last. What was never seen is not trusted far.
inline constexpr std::int64_t kMaxChunk = 512;
class ChunkSizer {
  public:
    /// growth: how far what was never seen is trusted, in times of the most rows lately.
    explicit ChunkSizer(double growth = 2) : growth_(growth) {}
    /// n_rows took elapsed_ms.
    void observe(std::int64_t n_rows, double elapsed_ms);
    std::int64_t rows(double step_ms) const;

  private:
    // Exponentially weighted sums over the steps: of 1, rows, ms, rows², rows × ms.
    double n_ = 0, rows_ = 0, ms_ = 0, rows_rows_ = 0, rows_ms_ = 0;
    double largest_ = 0;  // rows, forgotten as slowly
    double growth_;
};

/// Shares the die's time between streams and the prompt that is read: the prompt gets kShare of it. What a
/// step with a chunk took longer than one without is owed to the streams, which then decode alone until it is
/// paid back. So streams keep 1 − kShare of their throughput and a newcomer needs 1 / kShare of its time
/// alone, whatever a step takes.
class PrefillTurns {
  public:
    static constexpr double kShare = 0.4;
    /// A step without any rows of a prompt.
    void decoded(double elapsed_ms);
    /// A step with a chunk of a prompt while streams were decoding. has_decode_rows: with rows of theirs;
    /// they may have been waiting for a slot's word.
    void read(double elapsed_ms, bool has_decode_rows);
    /// A step with a chunk of a prompt and nobody who decodes.
    void read_alone() { owed_ms_ = 0; }
    bool may_read() const { return owed_ms_ <= 0; }
    /// How long a step with a chunk should take. Most of max_gap, unless that leaves next to nothing beside
    /// the streams' own rows: then enough for the prompt's share, at most max_gap more than without it.
    double step_ms(std::chrono::milliseconds max_gap) const;

  private:
    void spend(double reading_ms, double elapsed_ms);

    double decode_ms_ = 0;  // of a step without a chunk, lately
    double owed_ms_ = 0;    // time to the streams; below 0: to the prompt, a step's share at most
};

/// What a step carries, as far as its time is concerned.
struct StepShape {
    std::int64_t n_decode_rows = 0;
    std::int64_t n_read_rows = 0;  // of a prompt, or of a score job
    bool is_score = false;         // of which: logits of every row, another pace
    int n_decoding = 0;            // streams that wait for their next token, with a row in the step or not
};

/// How long a step may take when nobody decodes. Each step reads all weights, so that long ones pay; what
/// waits for its end is the next prompt, and no cancel (scheduler.h: give_up_step).
inline constexpr std::chrono::milliseconds kLongestAlone{3000};

class StepPacer {
  public:
    /// Rows of a prompt that may stand beside n_decode_rows of n_decoding streams; none while it is their
    /// turn. With no streams a step may take kLongestAlone.
    ChunkLimits limits(std::int64_t n_decode_rows, int n_decoding, std::chrono::milliseconds max_gap) const;
    void observe(const StepShape& shape, double elapsed_ms);

  private:
    struct Pace {
        ChunkSizer prompt, score;
        explicit Pace(double growth) : prompt(growth), score(growth) {}
    };
    // What long steps alone take says little of the few rows that stand beside streams: of experts, for one,
    // each of few rows needs others.
    Pace alone_{2};
    Pace beside_{1.3};  // a stream feels a chunk that is too long, and noise makes slopes look flat
    PrefillTurns turns_;
};

}  // namespace pantheon::actors

// What a die runs: one share of a model's layers with the states of its slots, stepped for rows of any slots
// at once.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/sampler/logit_row.h"
#include "model/state/checkpoint.h"
#include "runtime/base/ids.h"
#include "runtime/base/status.h"

namespace pantheon::model {

class Weights;          // model/qwen35moe/weights.h
struct StepProfile;     // model/qwen35moe/step_profile.h
class CheckpointCodec;  // model/state/checkpoint_codec.h

enum class Backend {
    ref,  // exact: weights expanded to f32, sums in f64
    cpu,  // quantised weights times quantised activations, with the best instructions that this host has
};
enum class KvFormat { f32, f16, q8_0, q4_0 };
enum class KvOverflow {
    stop,   // a slot holds n_ctx rows and no more
    slide,  // past n_ctx a query reads the first `sink` rows and the last n_ctx − sink, its own included
};
/// How keys and values are kept.
struct KvSettings {
    KvFormat format = KvFormat::f16;
    // q4_0 keeps the first `sink` and the last `window` rows in f16 as well, and reads them there.
    int sink = 16;
    int window = 128;
    KvOverflow overflow = KvOverflow::stop;
};
/// How one sequence keeps them.
enum class SequenceKv : std::uint8_t {
    configured,  // as KvSettings say
    q4_0,        // in q4_0 with their sink and window, whatever their format is
};
/// Which matrices the cpu backend keeps a second time, packed for its inner loops. The logits do not depend
/// on it.
enum class Repack {
    none,   // all weights stay where the file has them
    dense,  // what every token reads: everything but the routed experts
    all,
};

struct ExecutorConfig {
    Backend backend = Backend::ref;
    int n_threads = 1;
    int n_slots = 1;
    int n_ctx = 4096;  // KV rows a slot may hold
    KvSettings kv;
    std::uint64_t kv_pool_bytes = 0;  // for the KV of all slots together; 0: whatever they need
    Repack repack = Repack::none;     // cpu only, made before create() returns; what it takes: repack_bytes()
    StepProfile* profile =
        nullptr;  // where steps note their times (step_profile.h); must outlive the executor
};

enum class WantLogits { none, last, all };

/// Consecutive tokens of one slot within a step.
struct StepRun {
    SlotId slot;
    std::int32_t pos = 0;  // absolute position of tokens[0]; must be the slot's length
    std::vector<TokenId> tokens;
    WantLogits logits = WantLogits::last;
};

/// Rows of raw logits, f32 [n_rows, n_vocab], in the order of the runs; valid until the next step.
struct StepLogits {
    std::int64_t n_rows = 0;
    std::int64_t n_vocab = 0;
    const float* data = nullptr;
    const float* tile_maxima = nullptr;  // see kernels::TileMaxima; null: not known
    std::span<const float> row(std::int64_t i) const {
        return {data + i * n_vocab, static_cast<std::size_t>(n_vocab)};
    }
    /// The same for sampling.
    LogitRow sampling_row(std::int64_t i) const {
        if (!tile_maxima) return row(i);
        const std::int64_t n_tiles = kernels::n_logit_tiles(n_vocab);
        return {row(i), {tile_maxima + i * n_tiles, static_cast<std::size_t>(n_tiles)}};
    }
};

/// Each op of a step and the implementation that `backend` runs it with, for logs and status.
std::vector<std::pair<std::string, std::string>> op_choices(Backend backend);

/// The instruction set that `backend` runs with on this host: "scalar", "avx2" or "avx512".
std::string isa_name(Backend backend);

/// Bytes that a choice takes with this backend on this host: about those of the matrices in the file.
std::uint64_t repack_bytes(const Weights& weights, Backend backend, Repack repack);

/// The most whose bytes leave room for sequences in `free_bytes`. The copies come on top of the mapped file,
/// whose pages the system may drop once they are packed.
Repack repack_that_fits(const Weights& weights, Backend backend, std::int64_t free_bytes);

/// What the keys and values of a sequence of up to n_ctx rows take: each row, the f16 rows kept beside, and
/// all of it in whole pages.
struct KvSizes {
    std::uint64_t row_bytes = 0;
    std::uint64_t half_bytes = 0;
    std::uint64_t slot_bytes = 0;
};
KvSizes kv_sizes(const Weights& weights, const KvSettings& kv, int n_ctx);

/// What the state of a sequence of this model takes, and its checkpoints, whose images are in that format.
CheckpointSizes checkpoint_sizes(const Weights& weights, const KvSettings& kv,
                                 ImageFormat format = ImageFormat::f32);
/// How a checkpoint of this model is saved.
std::shared_ptr<const CheckpointCodec> checkpoint_codec(const Weights& weights, const KvSettings& kv,
                                                        ImageFormat format = ImageFormat::f32);

/// What a run in parts does between two places where it can pause, for all its rows; attention for as many of
/// them as take about the same time whatever the context is.
enum class RunUnit : std::uint8_t {
    gdn,        // the mixer of a layer
    attention,  // the mixer of a layer
    experts,    // of a layer
    head,       // comes last, here too
};

class Executor {
  public:
    /// Asked between two units of a run; true: the rest can wait.
    using Pause = std::function<bool(RunUnit done, RunUnit next)>;

    static Result<std::unique_ptr<Executor>> create(std::shared_ptr<const Weights> weights,
                                                    const ExecutorConfig& config);
    virtual ~Executor() = default;

    /// Gives the slot a fresh sequence of length 0: states zero, no KV. failed_precondition when it is bound.
    virtual Status bind(SlotId slot, SequenceKv kv) = 0;
    Status bind(SlotId slot) { return bind(slot, SequenceKv::configured); }
    /// Gives the slot a sequence that goes on from the checkpoint, which this executor must have made. Its KV
    /// is kept as the checkpoint has it.
    virtual Status restore(SlotId slot, const Checkpoint& from) = 0;
    /// What the slot's sequence is after its last step. f32: copies nothing; the sequence's next step does,
    /// as far as it writes to what the checkpoint keeps. f16: the recurrent states are rounded here, and
    /// neither the next step nor, after a restore, the first one has to copy them; the sequence itself stays
    /// exact. failed_precondition: it has slid past n_ctx, or is amid a run in parts.
    virtual Result<CheckpointPtr> snapshot(SlotId slot, ImageFormat format) = 0;
    Result<CheckpointPtr> snapshot(SlotId slot) { return snapshot(slot, ImageFormat::f32); }
    /// Rewrites the KV of the slot's sequence as SequenceKv::q4_0 keeps it; its later rows are kept so too.
    /// From here on its logits are others than without. resource_exhausted: no memory; failed_precondition:
    /// it is amid a run in parts; nothing has changed.
    virtual Status convert_to_q4_0(SlotId slot) = 0;
    /// Ends the slot's sequence and frees what it held. Harmless when it is not bound.
    virtual void release(SlotId slot) = 0;
    /// Tokens evaluated so far; −1 when the slot is not bound.
    virtual std::int32_t length(SlotId slot) const = 0;

    /// One pass over the weights for all runs. At most one run a slot. On an error no slot has changed
    /// (invalid_argument, failed_precondition: the plan was wrong; resource_exhausted: no memory, or the KV
    /// pool is used up, and the same step can succeed once other slots have been released).
    virtual Result<StepLogits> step(std::span<const StepRun> runs) = 0;
    /// A run of one slot in parts, between which other slots may step: begins it, or goes on with the one
    /// that has begun, which must be the same, for at least one unit and until `pause` says so. Nothing: it
    /// is not done. Till it is, the slot keeps its length and can only go on or be released. Errors as those
    /// of step(): nothing has changed, a run that has begun can go on. The logits do not depend on the parts.
    virtual Result<std::optional<StepLogits>> step_in_parts(const StepRun& run, const Pause& pause) = 0;

    /// Drops the packed copies and begins to make those of another choice. pack_some() makes them between two
    /// steps, for about `budget`, and says whether there is more to do. resource_exhausted: no memory; what
    /// was packed stays in use. An executor that packs nothing has nothing to do.
    virtual void begin_repack(Repack /*repack*/) {}
    virtual Result<bool> pack_some(std::chrono::microseconds /*budget*/) { return false; }
    /// Both at once.
    Status repack(Repack repack);
    virtual std::uint64_t repack_bytes() const { return 0; }  // held now
    /// Frees what only steps need, between two of them; the logits of the last one are gone, runs in parts
    /// are not.
    virtual void release_scratch() {}

    virtual std::uint64_t kv_used_bytes() const = 0;
    /// The most that kv_used_bytes() may be; what n_slots × n_ctx rows take when there is no such bound.
    virtual std::uint64_t kv_pool_bytes() const = 0;
};

}  // namespace pantheon::model

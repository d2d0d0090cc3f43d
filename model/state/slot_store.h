// Who holds which sequence's state: bind, release, move, snapshot and restore are one call each, and nothing
// else changes ownership.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/attention/kv_view.h"
#include "kernels/gdn/gated_delta_rule.h"
#include "model/state/checkpoint.h"
#include "model/state/host_checkpoint.h"
#include "model/state/kv_sequence.h"
#include "model/state/state_shape.h"
#include "runtime/base/ids.h"
#include "runtime/base/status.h"

namespace pantheon::model {

struct SlotStoreOptions {
    std::uint64_t kv_pool_bytes = 0;  // the most that kv_used_bytes() may become by reserve(); 0: no bound
    std::optional<StateShape> other;  // how sequences are kept that ask for it; the same but for the KV
    kernels::Exec* exec = nullptr;    // whose threads round and widen images; null: none is kept in f16
};

/// A slot is its state: prefill and decode write into the slot's own images, there is no live copy beside
/// them. Checkpoints share memory with slots: taking one and starting from one copies nothing; the next step
/// that writes to what is shared takes its own copy first, in reserve(). Images in f16 are shared with
/// nobody: they are rounded in snapshot() and widened in restore(), by all threads, each instead of the copy
/// in reserve() and with three quarters of its bytes read and written. Only the state in which a sequence
/// ends, which f32 gives away for nothing, costs a rounding more, between two steps.
class SlotStore {
  public:
    /// n_slots, n_ctx ≥ 1. Memory for a sequence is taken at bind() and as it grows. With slide_sink < n_ctx
    /// a sequence may grow past n_ctx: of earlier rows a query then reads the first slide_sink ones and the
    /// last n_ctx − slide_sink with its own. It must be the shape's kv_sink where that keeps f16 rows.
    SlotStore(const StateShape& shape, int n_slots, int n_ctx, std::optional<int> slide_sink = {},
              const SlotStoreOptions& options = {});

    /// A fresh sequence: length 0, states zero, no KV. failed_precondition when the slot is bound,
    /// resource_exhausted when memory is short. is_other: in the other shape, if there is one.
    Status bind(SlotId slot, bool is_other = false);
    /// A sequence that goes on from the checkpoint in its shape, which must be one of this store's
    /// (invalid_argument). Its blocks are there already: the pool may be exceeded by them, not by more.
    Status restore(SlotId slot, const Checkpoint& from);
    /// The slot's sequence as it is after its last step. failed_precondition when the slot is not bound, or
    /// its sequence is longer than n_ctx: rows of it are gone. The sequence itself stays exact whatever the
    /// format.
    Result<CheckpointPtr> snapshot(SlotId slot, ImageFormat format = ImageFormat::f32) const;
    /// The slot's sequence goes on in the other shape, its rows rewritten. resource_exhausted when memory is
    /// short, failed_precondition when it is not bound: nothing has changed.
    Status convert(SlotId slot);
    /// Frees what the slot held. Harmless when it is not bound.
    void release(SlotId slot);
    /// Hands the sequence of `from` to the unbound slot `to`; not a byte of it moves.
    Status move(SlotId from, SlotId to);

    bool is_valid(SlotId slot) const { return slot.value >= 0 && slot.value < n_slots(); }
    bool is_bound(SlotId slot) const { return is_valid(slot) && sequences_[index(slot)] != nullptr; }
    int n_slots() const { return static_cast<int>(sequences_.size()); }
    int n_ctx() const { return n_ctx_; }
    std::int32_t length(SlotId slot) const;  // −1 when not bound
    /// Rows that may still be added to a bound slot.
    std::int32_t room(SlotId slot) const {
        return (slide_.reach > 0 ? std::numeric_limits<std::int32_t>::max() : n_ctx_) - length(slot);
    }

    /// Makes room() for n more rows after the slot's length; what checkpoints share of the images and of that
    /// room becomes the slot's own. resource_exhausted when memory or the pool is short; the sequence itself
    /// does not change.
    Status reserve(SlotId slot, std::int32_t n_rows);
    /// The step has written n more rows and advanced the states; what no later step reads is let go.
    void commit(SlotId slot, std::int32_t n_rows);

    /// The images of a bound slot. GDN layers and attention layers are each counted among themselves.
    float* conv_state(SlotId slot, int gdn_layer);
    kernels::GdnState gdn_state(SlotId slot, int gdn_layer);
    kernels::KvView kv(SlotId slot, int attention_layer) const;

    std::uint64_t kv_used_bytes() const;  // what slots share counts once
    /// The bound, or n_slots × n_ctx rows, in whole pages, f16 ones included.
    std::uint64_t kv_pool_bytes() const;

  private:
    struct Sequence {
        std::int32_t length = 0;
        std::shared_ptr<StateImage> image;
        std::unique_ptr<KvSequence> kv;
    };
    Status check_free(SlotId slot) const;
    static std::size_t index(SlotId slot) { return static_cast<std::size_t>(slot.value); }
    const Sequence& at(SlotId slot) const { return *sequences_[index(slot)]; }
    Sequence& at(SlotId slot) { return *sequences_[index(slot)]; }

    StateShape shape_;
    int n_ctx_;
    KvSlide slide_;
    std::uint64_t pool_bytes_;
    kernels::Exec* exec_;
    std::shared_ptr<KvPools> pools_;
    std::shared_ptr<KvPools> other_pools_;              // of the other shape; null: there is none
    std::vector<std::unique_ptr<Sequence>> sequences_;  // by slot; null: not bound
};

}  // namespace pantheon::model

// The unit in which KV memory is taken and shared: one page for each attention layer and KV head.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "model/state/state_shape.h"

namespace pantheon::model {

/// 64 consecutive rows of a sequence in all attention layers. Sequences and checkpoints that share it hold it
/// together; whoever wants to write to a shared one takes a copy first.
class KvBlock {
  public:
    KvBlock(const StateShape& shape, std::uint64_t id);
    ~KvBlock();
    KvBlock(const KvBlock&) = delete;
    KvBlock& operator=(const KvBlock&) = delete;

    std::byte* page(int attention_layer, int head) {
        return bytes_ + static_cast<std::size_t>(attention_layer * n_head_kv_ + head) * page_bytes_;
    }
    const std::byte* page(int attention_layer, int head) const {
        return const_cast<KvBlock*>(this)->page(attention_layer, head);
    }
    std::uint64_t id() const { return id_; }  // never used again within a process

    int n_sequences = 0;  // slots whose sequence it belongs to; only the owner of the slots looks

  private:
    std::uint64_t id_;
    int n_head_kv_;
    std::size_t page_bytes_;
    std::byte* bytes_;
};

using KvBlockPtr = std::shared_ptr<KvBlock>;

/// Nobody else holds it, and what others did before they let go is over: it may be written.
template <class T>
bool is_held_alone(const std::shared_ptr<T>& p) {
    if (p.use_count() != 1) return false;
    std::atomic_thread_fence(std::memory_order_acquire);
    return true;
}

/// Makes blocks and knows how many belong to sequences.
class KvPool {
  public:
    explicit KvPool(const StateShape& shape) : shape_(shape) {}

    /// Throws std::bad_alloc.
    KvBlockPtr allocate();
    /// A copy of the block's first n_rows rows.
    KvBlockPtr copy(const KvBlock& from, int n_rows);

    const StateShape& shape() const { return shape_; }
    std::uint64_t block_bytes() const { return shape_.kv_bytes_per_page_row(); }

    /// A sequence takes the block in or lets go of it.
    void enter_sequence(KvBlock& block) { n_in_sequences_ += block.n_sequences++ == 0 ? 1 : 0; }
    void leave_sequence(KvBlock& block) { n_in_sequences_ -= --block.n_sequences == 0 ? 1 : 0; }
    /// Of all blocks that belong to a sequence, shared ones counted once.
    std::uint64_t sequence_bytes() const { return n_in_sequences_ * block_bytes(); }

  private:
    StateShape shape_;
    std::uint64_t n_in_sequences_ = 0;
};

/// Blocks of rows in their format, and of those that are kept in f16 as well.
struct KvPools {
    explicit KvPools(const StateShape& shape) : rows(shape), halves(shape.in_half()) {}
    const StateShape& shape() const { return rows.shape(); }
    std::uint64_t sequence_bytes() const { return rows.sequence_bytes() + halves.sequence_bytes(); }

    KvPool rows;
    KvPool halves;
};

}  // namespace pantheon::model

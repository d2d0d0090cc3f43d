// The K and V rows of one sequence over all attention layers, in blocks that are added as it grows and may be
// shared with checkpoints and other sequences.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/attention/kv_view.h"
#include "model/state/kv_block.h"

namespace pantheon::model {

class KvSequence {
  public:
    /// Empty, or over the blocks of a checkpoint, which stay shared.
    explicit KvSequence(std::shared_ptr<KvPool> pool, std::span<const KvBlockPtr> blocks = {});
    ~KvSequence();
    KvSequence(const KvSequence&) = delete;
    KvSequence& operator=(const KvSequence&) = delete;

    /// Makes rows n_rows … n_rows + n_more − 1 writable: blocks that are missing are added, and a shared
    /// block that holds rows of both kinds is copied. Throws std::bad_alloc; what is there stays as it is.
    void reserve(std::int64_t n_rows, std::int64_t n_more);

    /// The blocks of the first n_rows rows.
    std::vector<KvBlockPtr> share(std::int64_t n_rows) const;

    /// For the ops of one attention layer (counted among the attention layers). Valid until the next
    /// reserve().
    kernels::KvView view(int attention_layer) const;

    std::int64_t n_blocks() const { return static_cast<std::int64_t>(blocks_.size()); }

  private:
    void set_pages(std::size_t index);  // fills the tables, which must be long enough

    std::shared_ptr<KvPool> pool_;
    std::vector<KvBlockPtr> blocks_;
    std::vector<std::vector<std::byte*>> tables_;  // [attention layer][block · n_head_kv + head]
};

}  // namespace pantheon::model

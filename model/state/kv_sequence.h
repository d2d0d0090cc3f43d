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

/// The blocks of a sequence's first rows: one for each 64 rows, and the f16 ones beside them, null where none
/// is kept; no f16 ones at all when the shape keeps none.
struct KvBlocks {
    std::vector<KvBlockPtr> rows;
    std::vector<KvBlockPtr> halves;
};

/// Which rows later queries read: all, or the first `sink` ones and the last `reach` before and with
/// themselves.
struct KvSlide {
    int sink = 0;
    std::int64_t reach = 0;  // 0: all
};

class KvSequence {
  public:
    /// Empty, or over the blocks of a checkpoint, which stay shared.
    explicit KvSequence(std::shared_ptr<KvPools> pools, const KvBlocks& blocks = {},
                        const KvSlide& slide = {});
    ~KvSequence();
    KvSequence(const KvSequence&) = delete;
    KvSequence& operator=(const KvSequence&) = delete;

    /// Makes rows n_rows … n_rows + n_more − 1 writable: blocks that are missing are added, and a shared
    /// block that holds rows of both kinds is copied. Throws std::bad_alloc; what is there stays as it is.
    void reserve(std::int64_t n_rows, std::int64_t n_more);

    /// What reserve() would add to what all sequences of the pools hold.
    std::uint64_t missing_bytes(std::int64_t n_rows, std::int64_t n_more) const;

    /// The first n_rows rows in the format and with the f16 rows of other pools, whose shape differs in
    /// nothing else. Of a sequence that keeps no f16 rows beside. Throws std::bad_alloc.
    std::unique_ptr<KvSequence> converted(std::shared_ptr<KvPools> pools, std::int64_t n_rows) const;

    /// The sequence has n_rows rows now: lets go of what no query from there on reads.
    void trim(std::int64_t n_rows);

    /// The blocks of the first n_rows rows, none of which has been let go, and the f16 rows that go with that
    /// length.
    KvBlocks share(std::int64_t n_rows) const;

    /// For the ops of one attention layer (counted among the attention layers). Valid until the next
    /// reserve() or trim().
    kernels::KvView view(int attention_layer) const;

    /// Pages up to the last one, with those that are gone.
    std::int64_t n_pages() const { return static_cast<std::int64_t>(blocks_.rows.size()) + n_gone_; }
    std::int64_t n_gone() const { return n_gone_; }
    const StateShape& shape() const { return pools_->shape(); }

  private:
    using Table = std::vector<std::byte*>;  // [place of a page · n_head_kv + head]

    std::size_t n_heads() const { return static_cast<std::size_t>(shape().n_head_kv); }
    std::int64_t first_gone() const { return n_kv_pages(slide_.sink); }
    std::size_t place(std::int64_t page) const {
        return static_cast<std::size_t>(page < first_gone() ? page : page - n_gone_);
    }
    std::int64_t page_at(std::size_t place) const {
        const auto page = static_cast<std::int64_t>(place);
        return page < first_gone() ? page : page + n_gone_;
    }
    void own(std::vector<KvBlockPtr>& blocks, KvPool& pool, std::size_t place, int n_rows);
    void add_page();
    void set_pages(std::size_t place);  // fills the tables, which must be long enough

    std::shared_ptr<KvPools> pools_;
    KvSlide slide_;
    KvBlocks blocks_;
    std::int64_t n_gone_ = 0;
    std::vector<Table> tables_, half_tables_;  // by attention layer; the latter empty when no f16 is kept
};

}  // namespace pantheon::model

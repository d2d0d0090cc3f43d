// The K and V rows of one sequence over all attention layers, in pages that are added as it grows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/attention/kv_view.h"
#include "model/state/state_shape.h"

namespace pantheon::model {

class KvSequence {
  public:
    explicit KvSequence(const StateShape& shape);

    /// Makes room for rows 0 … n_rows − 1. Throws std::bad_alloc; what is there stays as it is.
    void reserve(std::int64_t n_rows);

    /// For the ops of one attention layer (counted among the attention layers). Valid until the next
    /// reserve().
    kernels::KvView view(int attention_layer) const;

    std::int64_t n_pages() const { return n_pages_; }  // per layer and head
    std::uint64_t used_bytes() const;

  private:
    struct Free {
        void operator()(std::byte* p) const;
    };
    using Page = std::unique_ptr<std::byte, Free>;
    static Page allocate_page(std::size_t n_bytes);

    StateShape shape_;
    std::int64_t n_pages_ = 0;
    std::vector<Page> owned_;
    std::vector<std::vector<std::byte*>> tables_;  // [attention layer][page · n_head_kv + head]
};

}  // namespace pantheon::model

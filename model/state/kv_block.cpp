#include "model/state/kv_block.h"

#include <cstring>
#include <new>

namespace pantheon::model {
namespace {

constexpr std::align_val_t kPageAlignment{64};

/// Ids are told to others, so they differ between pools as well.
std::uint64_t next_block_id() {
    static std::atomic<std::uint64_t> n{0};
    return ++n;
}

}  // namespace

KvBlock::KvBlock(const StateShape& shape, std::uint64_t id)
    : id_(id),
      n_head_kv_(shape.n_head_kv),
      page_bytes_(kernels::kv_page_bytes(shape.kv_type, shape.head_dim)),
      bytes_(static_cast<std::byte*>(::operator new(shape.kv_bytes_per_page_row(), kPageAlignment))) {}

KvBlock::~KvBlock() {
    ::operator delete(bytes_, kPageAlignment);
}

KvBlockPtr KvPool::allocate() {
    return std::make_shared<KvBlock>(shape_, next_block_id());
}

KvBlockPtr KvPool::copy(const KvBlock& from, int n_rows) {
    KvBlockPtr block = allocate();
    const std::size_t row_bytes = kernels::kv_row_bytes(shape_.kv_type, shape_.head_dim);
    const std::size_t used_bytes = static_cast<std::size_t>(n_rows) * row_bytes;
    const std::size_t v_offset = static_cast<std::size_t>(kernels::kKvPageRows) * row_bytes;
    for (int layer = 0; layer < shape_.n_attention_layers; ++layer)
        for (int head = 0; head < shape_.n_head_kv; ++head) {
            std::byte* to = block->page(layer, head);
            const std::byte* page = from.page(layer, head);
            std::memcpy(to, page, used_bytes);
            std::memcpy(to + v_offset, page + v_offset, used_bytes);
        }
    return block;
}

}  // namespace pantheon::model

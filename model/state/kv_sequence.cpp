#include "model/state/kv_sequence.h"

#include <utility>

namespace pantheon::model {

KvSequence::KvSequence(std::shared_ptr<KvPool> pool, std::span<const KvBlockPtr> blocks)
    : pool_(std::move(pool)), tables_(static_cast<std::size_t>(pool_->shape().n_attention_layers)) {
    blocks_.assign(blocks.begin(), blocks.end());
    for (auto& table : tables_)
        table.resize(blocks_.size() * static_cast<std::size_t>(pool_->shape().n_head_kv));
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
        pool_->enter_sequence(*blocks_[i]);
        set_pages(i);
    }
}

KvSequence::~KvSequence() {
    for (const KvBlockPtr& block : blocks_) pool_->leave_sequence(*block);
}

void KvSequence::set_pages(std::size_t index) {
    const auto n_heads = static_cast<std::size_t>(pool_->shape().n_head_kv);
    for (std::size_t layer = 0; layer < tables_.size(); ++layer)
        for (std::size_t head = 0; head < n_heads; ++head)
            tables_[layer][index * n_heads + head] =
                blocks_[index]->page(static_cast<int>(layer), static_cast<int>(head));
}

void KvSequence::reserve(std::int64_t n_rows, std::int64_t n_more) {
    const std::int64_t n_partial = n_rows % kernels::kKvPageRows;
    if (n_more > 0 && n_partial > 0) {
        // A step writes behind n_rows: who shares the block must not see that, nor must we see theirs.
        const auto last = static_cast<std::size_t>(n_rows / kernels::kKvPageRows);
        if (!is_held_alone(blocks_[last])) {
            KvBlockPtr own = pool_->copy(*blocks_[last], static_cast<int>(n_partial));
            pool_->leave_sequence(*blocks_[last]);
            pool_->enter_sequence(*own);
            blocks_[last] = std::move(own);
            set_pages(last);
        }
    }
    const auto n_heads = static_cast<std::size_t>(pool_->shape().n_head_kv);
    while (n_blocks() < n_kv_pages(n_rows + n_more)) {
        // Everything that can fail comes first, so that tables and blocks never differ in length.
        KvBlockPtr block = pool_->allocate();
        blocks_.reserve(blocks_.size() + 1);
        for (auto& table : tables_) table.reserve(table.size() + n_heads);

        for (auto& table : tables_) table.resize(table.size() + n_heads);
        pool_->enter_sequence(*block);
        blocks_.push_back(std::move(block));
        set_pages(blocks_.size() - 1);
    }
}

std::vector<KvBlockPtr> KvSequence::share(std::int64_t n_rows) const {
    return {blocks_.begin(), blocks_.begin() + n_kv_pages(n_rows)};
}

kernels::KvView KvSequence::view(int attention_layer) const {
    const StateShape& shape = pool_->shape();
    kernels::KvView view;
    view.type = shape.kv_type;
    view.n_head_kv = shape.n_head_kv;
    view.head_dim = shape.head_dim;
    view.pages = tables_[static_cast<std::size_t>(attention_layer)].data();
    return view;
}

}  // namespace pantheon::model

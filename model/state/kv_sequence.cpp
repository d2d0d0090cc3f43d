#include "model/state/kv_sequence.h"

#include <cassert>
#include <utility>

namespace pantheon::model {

KvSequence::KvSequence(std::shared_ptr<KvPools> pools, const KvBlocks& blocks, const KvSlide& slide)
    : pools_(std::move(pools)), slide_(slide), tables_(static_cast<std::size_t>(shape().n_attention_layers)) {
    blocks_ = blocks;
    if (shape().keeps_half()) {
        half_tables_.resize(tables_.size());
        blocks_.halves.resize(blocks_.rows.size());
    }
    for (auto* tables : {&tables_, &half_tables_})
        for (Table& table : *tables) table.resize(blocks_.rows.size() * n_heads());
    for (std::size_t i = 0; i < blocks_.rows.size(); ++i) set_pages(i);
    for (const KvBlockPtr& block : blocks_.rows) pools_->rows.enter_sequence(*block);
    for (const KvBlockPtr& block : blocks_.halves)
        if (block) pools_->halves.enter_sequence(*block);
}

KvSequence::~KvSequence() {
    for (const KvBlockPtr& block : blocks_.rows) pools_->rows.leave_sequence(*block);
    for (const KvBlockPtr& block : blocks_.halves)
        if (block) pools_->halves.leave_sequence(*block);
}

void KvSequence::set_pages(std::size_t place) {
    for (std::size_t layer = 0; layer < tables_.size(); ++layer)
        for (std::size_t head = 0; head < n_heads(); ++head) {
            const auto page_of = [&](const KvBlockPtr& block) {
                return block ? block->page(static_cast<int>(layer), static_cast<int>(head)) : nullptr;
            };
            tables_[layer][place * n_heads() + head] = page_of(blocks_.rows[place]);
            if (!half_tables_.empty())
                half_tables_[layer][place * n_heads() + head] = page_of(blocks_.halves[place]);
        }
}

/// A copy of the block takes its place if others hold it too.
void KvSequence::own(std::vector<KvBlockPtr>& blocks, KvPool& pool, std::size_t place, int n_rows) {
    if (!blocks[place] || is_held_alone(blocks[place])) return;
    KvBlockPtr copy = pool.copy(*blocks[place], n_rows);
    pool.leave_sequence(*blocks[place]);
    pool.enter_sequence(*copy);
    blocks[place] = std::move(copy);
    set_pages(place);
}

void KvSequence::add_page() {
    // Everything that can fail comes first, so that tables and blocks never differ in length.
    KvBlockPtr block = pools_->rows.allocate();
    KvBlockPtr half;
    if (shape().keeps_half_of(n_pages(), n_pages() * kernels::kKvPageRows)) half = pools_->halves.allocate();
    blocks_.rows.reserve(blocks_.rows.size() + 1);
    blocks_.halves.reserve(blocks_.rows.size() + 1);
    for (auto* tables : {&tables_, &half_tables_})
        for (Table& table : *tables) table.reserve(table.size() + n_heads());

    for (auto* tables : {&tables_, &half_tables_})
        for (Table& table : *tables) table.resize(table.size() + n_heads());
    pools_->rows.enter_sequence(*block);
    blocks_.rows.push_back(std::move(block));
    if (!half_tables_.empty()) {
        if (half) pools_->halves.enter_sequence(*half);
        blocks_.halves.push_back(std::move(half));
    }
    set_pages(blocks_.rows.size() - 1);
}

void KvSequence::reserve(std::int64_t n_rows, std::int64_t n_more) {
    const auto n_partial = static_cast<int>(n_rows % kernels::kKvPageRows);
    if (n_more > 0 && n_partial > 0) {
        // A step writes behind n_rows: who shares the block must not see that, nor must we see theirs.
        const std::size_t last = place(n_rows / kernels::kKvPageRows);
        own(blocks_.rows, pools_->rows, last, n_partial);
        if (shape().keeps_half()) own(blocks_.halves, pools_->halves, last, n_partial);
    }
    while (n_pages() < n_kv_pages(n_rows + n_more)) add_page();
}

void KvSequence::trim(std::int64_t n_rows) {
    for (std::size_t i = 0; i < blocks_.halves.size(); ++i) {
        KvBlockPtr& half = blocks_.halves[i];
        if (!half || shape().keeps_half_of(page_at(i), n_rows)) continue;
        pools_->halves.leave_sequence(*half);
        half.reset();
        set_pages(i);
    }
    if (slide_.reach == 0) return;
    // Hidden from n_rows on, the next position: rows up to n_rows − reach behind the sink's pages.
    const std::int64_t first_kept = (n_rows - slide_.reach + 1) / kernels::kKvPageRows;
    const std::int64_t n = first_kept - first_gone() - n_gone_;
    if (n <= 0) return;
    const auto at = static_cast<std::ptrdiff_t>(first_gone()), end = at + static_cast<std::ptrdiff_t>(n);
    for (std::ptrdiff_t i = at; i < end; ++i)
        pools_->rows.leave_sequence(*blocks_.rows[static_cast<std::size_t>(i)]);
    blocks_.rows.erase(blocks_.rows.begin() + at, blocks_.rows.begin() + end);
    if (!blocks_.halves.empty()) {
        for (std::ptrdiff_t i = at; i < end; ++i)
            if (const KvBlockPtr& half = blocks_.halves[static_cast<std::size_t>(i)])
                pools_->halves.leave_sequence(*half);
        blocks_.halves.erase(blocks_.halves.begin() + at, blocks_.halves.begin() + end);
    }
    const auto heads = static_cast<std::ptrdiff_t>(n_heads());
    for (auto* tables : {&tables_, &half_tables_})
        for (Table& table : *tables) table.erase(table.begin() + at * heads, table.begin() + end * heads);
    n_gone_ += n;
}

KvBlocks KvSequence::share(std::int64_t n_rows) const {
    assert(n_gone_ == 0);
    KvBlocks shared;
    const std::int64_t n = n_kv_pages(n_rows);
    shared.rows.assign(blocks_.rows.begin(), blocks_.rows.begin() + n);
    if (!shape().keeps_half()) return shared;
    for (std::int64_t page = 0; page < n; ++page)
        shared.halves.push_back(shape().keeps_half_of(page, n_rows) ? blocks_.halves[place(page)] : nullptr);
    return shared;
}

kernels::KvView KvSequence::view(int attention_layer) const {
    kernels::KvView view;
    view.type = shape().kv_type;
    view.n_head_kv = shape().n_head_kv;
    view.head_dim = shape().head_dim;
    view.pages = tables_[static_cast<std::size_t>(attention_layer)].data();
    if (!half_tables_.empty())
        view.half_pages = half_tables_[static_cast<std::size_t>(attention_layer)].data();
    view.first_gone = first_gone();
    view.n_gone = n_gone_;
    view.sink = slide_.reach > 0 ? slide_.sink : shape().kv_sink;
    view.window = shape().kv_window;
    view.reach = slide_.reach;
    return view;
}

}  // namespace pantheon::model

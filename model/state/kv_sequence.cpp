#include "model/state/kv_sequence.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "kernels/attention/kv_rows.h"

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

std::uint64_t KvSequence::missing_bytes(std::int64_t n_rows, std::int64_t n_more) const {
    std::uint64_t n_bytes = 0;
    if (n_more > 0 && n_rows % kernels::kKvPageRows > 0) {
        // own() makes a copy; it adds nothing where the original belongs to no other sequence.
        const std::size_t last = place(n_rows / kernels::kKvPageRows);
        const auto is_copied = [](const KvBlockPtr& block) { return block && block->n_sequences > 1; };
        if (is_copied(blocks_.rows[last])) n_bytes += pools_->rows.block_bytes();
        if (shape().keeps_half() && is_copied(blocks_.halves[last])) n_bytes += pools_->halves.block_bytes();
    }
    for (std::int64_t page = n_pages(); page < n_kv_pages(n_rows + n_more); ++page) {
        n_bytes += pools_->rows.block_bytes();
        if (shape().keeps_half_of(page, page * kernels::kKvPageRows)) n_bytes += pools_->halves.block_bytes();
    }
    return n_bytes;
}

namespace {

/// Rewrites the first n_rows rows of a block, K and V of all layers and heads.
void rewrite(const KvBlock& from, const StateShape& from_shape, KvBlock& to, const StateShape& to_shape,
             int n_rows) {
    const int head_dim = from_shape.head_dim;
    const std::size_t from_bytes = kernels::kv_row_bytes(from_shape.kv_type, head_dim);
    const std::size_t to_bytes = kernels::kv_row_bytes(to_shape.kv_type, head_dim);
    std::vector<float> x(static_cast<std::size_t>(head_dim));
    const auto rewrite_row = [&](const std::byte* from_page, std::byte* to_page, int row) {
        const auto i = static_cast<std::size_t>(row);
        kernels::load_kv_row(from_shape.kv_type, from_page + i * from_bytes, head_dim, x.data());
        kernels::store_kv_row(to_shape.kv_type, x.data(), head_dim, to_page + i * to_bytes);
    };
    for (int layer = 0; layer < from_shape.n_attention_layers; ++layer)
        for (int head = 0; head < from_shape.n_head_kv; ++head)
            for (int row = 0; row < n_rows; ++row) {
                rewrite_row(from.page(layer, head), to.page(layer, head), row);
                rewrite_row(from.page(layer, head), to.page(layer, head), kernels::kKvPageRows + row);  // V
            }
}

}  // namespace

std::unique_ptr<KvSequence> KvSequence::converted(std::shared_ptr<KvPools> pools, std::int64_t n_rows) const {
    assert(!shape().keeps_half());
    const StateShape& to = pools->shape();
    KvBlocks blocks;
    for (std::size_t i = 0; i < blocks_.rows.size() && page_at(i) < n_kv_pages(n_rows); ++i) {
        const std::int64_t page = page_at(i);
        const auto n = static_cast<int>(
            std::min<std::int64_t>(kernels::kKvPageRows, n_rows - page * kernels::kKvPageRows));
        const KvBlock& from = *blocks_.rows[i];
        blocks.rows.push_back(pools->rows.allocate());
        rewrite(from, shape(), *blocks.rows.back(), to, n);
        if (!to.keeps_half()) continue;
        blocks.halves.push_back(to.keeps_half_of(page, n_rows) ? pools->halves.allocate() : nullptr);
        if (blocks.halves.back()) rewrite(from, shape(), *blocks.halves.back(), to.in_half(), n);
    }
    auto sequence = std::make_unique<KvSequence>(std::move(pools), blocks, slide_);
    sequence->n_gone_ = n_gone_;
    return sequence;
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

#include "model/state/kv_sequence.h"

#include <new>

namespace pantheon::model {
namespace {
constexpr std::align_val_t kPageAlignment{64};
}

void KvSequence::Free::operator()(std::byte* p) const {
    ::operator delete(p, kPageAlignment);
}

KvSequence::Page KvSequence::allocate_page(std::size_t n_bytes) {
    return Page(static_cast<std::byte*>(::operator new(n_bytes, kPageAlignment)));
}

KvSequence::KvSequence(const StateShape& shape)
    : shape_(shape), tables_(static_cast<std::size_t>(shape.n_attention_layers)) {}

void KvSequence::reserve(std::int64_t n_rows) {
    const std::size_t n_heads = static_cast<std::size_t>(shape_.n_head_kv);
    const std::size_t page_bytes = kernels::kv_page_bytes(shape_.kv_type, shape_.head_dim);
    while (n_pages_ < n_kv_pages(n_rows)) {
        // Everything that can fail comes first, so that the tables never differ in length.
        std::vector<Page> pages;
        for (std::size_t i = 0; i < tables_.size() * n_heads; ++i) pages.push_back(allocate_page(page_bytes));
        owned_.reserve(owned_.size() + pages.size());
        for (auto& table : tables_) table.reserve(table.size() + n_heads);

        for (std::size_t i = 0; i < pages.size(); ++i) {
            tables_[i / n_heads].push_back(pages[i].get());
            owned_.push_back(std::move(pages[i]));
        }
        ++n_pages_;
    }
}

kernels::KvView KvSequence::view(int attention_layer) const {
    kernels::KvView view;
    view.type = shape_.kv_type;
    view.n_head_kv = shape_.n_head_kv;
    view.head_dim = shape_.head_dim;
    view.pages = tables_[static_cast<std::size_t>(attention_layer)].data();
    return view;
}

std::uint64_t KvSequence::used_bytes() const {
    return static_cast<std::uint64_t>(n_pages_) * shape_.kv_bytes_per_page_row();
}

}  // namespace pantheon::model

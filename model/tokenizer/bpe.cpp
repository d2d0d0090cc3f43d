#include "model/tokenizer/bpe.h"

#include <algorithm>
#include <bit>

namespace pantheon::model {
namespace {

/// Up to here scanning all pairs for the best one beats a heap; a word has some five bytes.
constexpr std::size_t kShortPiece = 48;
constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

}  // namespace

MergeTable::MergeTable(std::size_t n_merges_max)
    : slots_(std::bit_ceil(std::max<std::size_t>(2 * n_merges_max, 16))),
      mask_(slots_.size() - 1),
      shift_(64 - std::countr_zero(slots_.size())) {}

void MergeTable::add(Symbol left, Symbol right, Merge merge) {
    const std::uint64_t key = key_of(left, right);
    std::size_t i = slot_of(key);
    while (slots_[i].key != kEmpty) {
        if (slots_[i].key == key) return;
        i = (i + 1) & mask_;
    }
    slots_[i] = {key, merge};
}

std::size_t BpeMerger::merge(std::span<Symbol> symbols) {
    if (symbols.size() < 2) return symbols.size();
    return symbols.size() <= kShortPiece ? merge_short(symbols) : merge_long(symbols);
}

std::size_t BpeMerger::merge_short(std::span<Symbol> symbols) {
    std::size_t n = symbols.size();
    pairs_.resize(n - 1);
    for (std::size_t i = 0; i + 1 < n; ++i) pairs_[i] = merges_.find(symbols[i], symbols[i + 1]);
    while (n > 1) {
        std::size_t best = 0;
        for (std::size_t i = 1; i + 1 < n; ++i)
            if (pairs_[i].rank < pairs_[best].rank) best = i;
        if (pairs_[best].rank == MergeTable::kNoRank) break;
        symbols[best] = pairs_[best].result;
        for (std::size_t i = best + 1; i + 1 < n; ++i) symbols[i] = symbols[i + 1];
        for (std::size_t i = best; i + 2 < n; ++i) pairs_[i] = pairs_[i + 1];
        --n;
        if (best > 0) pairs_[best - 1] = merges_.find(symbols[best - 1], symbols[best]);
        if (best + 1 < n) pairs_[best] = merges_.find(symbols[best], symbols[best + 1]);
    }
    return n;
}

std::size_t BpeMerger::merge_long(std::span<Symbol> symbols) {
    const auto n = static_cast<std::uint32_t>(symbols.size());
    previous_.resize(n);
    next_.resize(n);
    heap_.clear();
    const auto is_later = [](const Candidate& a, const Candidate& b) {
        return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
    };
    const auto candidate = [&](std::uint32_t position, std::uint32_t after) {
        const MergeTable::Merge m = merges_.find(symbols[position], symbols[after]);
        return Candidate{m.rank, position, symbols[position], symbols[after], m.result};
    };
    for (std::uint32_t i = 0; i < n; ++i) {
        previous_[i] = i == 0 ? kNone : i - 1;
        next_[i] = i + 1 == n ? kNone : i + 1;
        if (i + 1 == n) break;
        const Candidate c = candidate(i, i + 1);
        if (c.rank != MergeTable::kNoRank) heap_.push_back(c);
    }
    std::make_heap(heap_.begin(), heap_.end(), is_later);
    const auto note = [&](std::uint32_t position, std::uint32_t after) {
        const Candidate c = candidate(position, after);
        if (c.rank == MergeTable::kNoRank) return;
        heap_.push_back(c);
        std::push_heap(heap_.begin(), heap_.end(), is_later);
    };
    while (!heap_.empty()) {
        std::pop_heap(heap_.begin(), heap_.end(), is_later);
        const Candidate c = heap_.back();
        heap_.pop_back();
        // A symbol that was merged away is −1 and so matches no candidate.
        const std::uint32_t after = next_[c.position];
        if (symbols[c.position] != c.left || after == kNone || symbols[after] != c.right) continue;
        symbols[c.position] = c.result;
        symbols[after] = -1;
        next_[c.position] = next_[after];
        if (next_[after] != kNone) previous_[next_[after]] = c.position;
        if (previous_[c.position] != kNone) note(previous_[c.position], c.position);
        if (next_[c.position] != kNone) note(c.position, next_[c.position]);
    }
    std::size_t n_left = 0;
    for (std::uint32_t i = 0; i != kNone; i = next_[i]) symbols[n_left++] = symbols[i];
    return n_left;
}

}  // namespace pantheon::model

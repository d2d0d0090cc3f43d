// Byte-pair merging on numbered symbols: adjacent pairs are merged by rank, leftmost first on ties.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace pantheon::model {

using Symbol = std::int32_t;

/// (left, right) → rank and result. Open addressing: a lookup is one or two cache lines, which is what BPE
/// spends its time on.
class MergeTable {
  public:
    static constexpr std::uint32_t kNoRank = std::numeric_limits<std::uint32_t>::max();
    struct Merge {
        std::uint32_t rank = kNoRank;
        Symbol result = -1;
    };

    explicit MergeTable(std::size_t n_merges_max);
    /// The first rule for a pair counts. At most n_merges_max calls.
    void add(Symbol left, Symbol right, Merge merge);
    Merge find(Symbol left, Symbol right) const {
        const std::uint64_t key = key_of(left, right);
        for (std::size_t i = slot_of(key);; i = (i + 1) & mask_) {
            if (slots_[i].key == key) return slots_[i].merge;
            if (slots_[i].key == kEmpty) return {};
        }
    }

  private:
    static constexpr std::uint64_t kEmpty = std::numeric_limits<std::uint64_t>::max();
    struct Slot {
        std::uint64_t key = kEmpty;
        Merge merge;
    };

    static std::uint64_t key_of(Symbol left, Symbol right) {
        return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
    }
    std::size_t slot_of(std::uint64_t key) const { return (key * 0x9E3779B97F4A7C15U >> shift_) & mask_; }

    std::vector<Slot> slots_;
    std::size_t mask_;
    int shift_;
};

/// Merges one piece after another; keeps its scratch between calls. One object a thread.
class BpeMerger {
  public:
    explicit BpeMerger(const MergeTable& merges) : merges_(merges) {}

    /// Merges `symbols` in place as far as the rules go and returns how many are left, at the front.
    std::size_t merge(std::span<Symbol> symbols);

  private:
    std::size_t merge_short(std::span<Symbol> symbols);
    std::size_t merge_long(std::span<Symbol> symbols);

    /// A pair that could merge when it was noted; it still can if both symbols are as they were.
    struct Candidate {
        std::uint32_t rank;
        std::uint32_t position;
        Symbol left, right, result;
    };

    const MergeTable& merges_;
    std::vector<MergeTable::Merge> pairs_;  // short pieces: what symbol i and the next one give
    std::vector<Candidate> heap_;           // long pieces
    std::vector<std::uint32_t> previous_, next_;
};

}  // namespace pantheon::model

// Finds added tokens in a text: plain substrings, the longest text first wherever two overlap.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/ids.h"

namespace pantheon::model {

/// Bytes [begin, end) of a text.
struct TextRange {
    std::size_t begin = 0;
    std::size_t end = 0;
    friend bool operator==(const TextRange&, const TextRange&) = default;
};

class AddedTokenMatcher {
  public:
    struct Entry {
        std::string text;
        TokenId id = -1;
        bool needs_trust = false;  // matches only wholly inside a trusted range
    };
    struct Match {
        std::size_t begin = 0;
        std::size_t end = 0;
        TokenId id = -1;
    };

    AddedTokenMatcher() = default;
    /// Entries with an empty text never match. Texts are distinct.
    explicit AddedTokenMatcher(std::vector<Entry> entries);

    /// Disjoint matches in order of position. `trusted` is sorted and disjoint.
    std::vector<Match> find(std::string_view text, std::span<const TextRange> trusted) const;

  private:
    void collect_at(std::string_view text, std::size_t begin, std::size_t trusted_end,
                    std::vector<Match>& out) const;

    std::vector<Entry> entries_;  // sorted by text, so that a prefix narrows a range
    std::array<std::size_t, 257>
        first_byte_{};  // entries that begin with byte b: [first_byte_[b], first_byte_[b + 1])
};

}  // namespace pantheon::model

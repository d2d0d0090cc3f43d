#include "model/tokenizer/added_tokens.h"

#include <algorithm>
#include <map>
#include <utility>

namespace pantheon::model {
namespace {

unsigned char byte_at(std::string_view text, std::size_t i) {
    return static_cast<unsigned char>(text[i]);
}

bool overlaps_any(const std::vector<AddedTokenMatcher::Match>& sorted) {
    for (std::size_t i = 1; i < sorted.size(); ++i)
        if (sorted[i].begin < sorted[i - 1].end) return true;
    return false;
}

/// Takes matches longest first (then lower id, then from the left) and drops those that overlap one taken
/// before: what searching for one token after the other in what is left of the text comes to.
std::vector<AddedTokenMatcher::Match> longest_first(std::vector<AddedTokenMatcher::Match> matches) {
    std::sort(matches.begin(), matches.end(), [](const auto& a, const auto& b) {
        const std::size_t a_size = a.end - a.begin;
        const std::size_t b_size = b.end - b.begin;
        if (a_size != b_size) return a_size > b_size;
        if (a.id != b.id) return a.id < b.id;
        return a.begin < b.begin;
    });
    std::map<std::size_t, AddedTokenMatcher::Match> taken;  // by begin
    for (const auto& m : matches) {
        const auto after = taken.lower_bound(m.begin);
        if (after != taken.end() && after->first < m.end) continue;
        if (after != taken.begin() && std::prev(after)->second.end > m.begin) continue;
        taken.emplace_hint(after, m.begin, m);
    }
    std::vector<AddedTokenMatcher::Match> result;
    result.reserve(taken.size());
    for (const auto& [begin, m] : taken) result.push_back(m);
    return result;
}

}  // namespace

AddedTokenMatcher::AddedTokenMatcher(std::vector<Entry> entries) : entries_(std::move(entries)) {
    std::erase_if(entries_, [](const Entry& e) { return e.text.empty(); });
    std::sort(entries_.begin(), entries_.end(),
              [](const Entry& a, const Entry& b) { return a.text < b.text; });
    for (const Entry& e : entries_) ++first_byte_[byte_at(e.text, 0) + 1U];
    for (std::size_t b = 0; b < 256; ++b) first_byte_[b + 1] += first_byte_[b];
}

void AddedTokenMatcher::collect_at(std::string_view text, std::size_t begin, std::size_t trusted_end,
                                   std::vector<Match>& out) const {
    const unsigned char first = byte_at(text, begin);
    auto low = entries_.begin() + static_cast<std::ptrdiff_t>(first_byte_[first]);
    auto high = entries_.begin() + static_cast<std::ptrdiff_t>(first_byte_[first + 1U]);
    // All entries in [low, high) share the text's next `depth` bytes.
    for (std::size_t depth = 1; low != high; ++depth) {
        if (low->text.size() == depth) {
            const std::size_t end = begin + depth;
            if (!low->needs_trust || end <= trusted_end) out.push_back({begin, end, low->id});
            ++low;
        }
        if (begin + depth == text.size()) return;
        const unsigned char wanted = byte_at(text, begin + depth);
        low =
            std::partition_point(low, high, [&](const Entry& e) { return byte_at(e.text, depth) < wanted; });
        high =
            std::partition_point(low, high, [&](const Entry& e) { return byte_at(e.text, depth) == wanted; });
    }
}

std::vector<AddedTokenMatcher::Match> AddedTokenMatcher::find(std::string_view text,
                                                              std::span<const TextRange> trusted) const {
    std::vector<Match> matches;
    auto range = trusted.begin();
    for (std::size_t pos = 0; pos < text.size(); ++pos) {
        const unsigned char first = byte_at(text, pos);
        if (first_byte_[first] == first_byte_[first + 1U]) continue;
        while (range != trusted.end() && range->end <= pos) ++range;
        const bool is_trusted = range != trusted.end() && range->begin <= pos;
        collect_at(text, pos, is_trusted ? range->end : 0, matches);
    }
    return overlaps_any(matches) ? longest_first(std::move(matches)) : matches;
}

}  // namespace pantheon::model

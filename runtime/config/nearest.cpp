#include "runtime/config/nearest.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace pantheon::config {
namespace {

char folded(char c) {
    if (c == '-') return '_';
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
    // Three rows of the usual table: a swap looks two rows back.
    std::vector<int> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
    for (std::size_t i = 1; i <= a.size(); ++i) {
        before.swap(last);
        last.swap(row);
        row[0] = static_cast<int>(i);
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const bool is_same = folded(a[i - 1]) == folded(b[j - 1]);
            row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (is_same ? 0 : 1)});
            const bool is_swap = i > 1 && j > 1 && folded(a[i - 1]) == folded(b[j - 2]) &&
                                 folded(a[i - 2]) == folded(b[j - 1]);
            if (is_swap) row[j] = std::min(row[j], before[j - 2] + 1);
        }
    }
    return row[b.size()];
}

std::string_view nearest_name(std::string_view name, std::span<const std::string_view> known) {
    // Somebody who stopped typing in the middle meant what starts like that.
    if (name.size() >= 2)
        for (const std::string_view candidate : known)
            if (edit_distance(name, candidate.substr(0, name.size())) == 0) return candidate;
    std::string_view best;
    int best_distance = std::numeric_limits<int>::max();
    for (const std::string_view candidate : known) {
        const int distance = edit_distance(name, candidate);
        if (distance < best_distance) {
            best_distance = distance;
            best = candidate;
        }
    }
    return best;
}

}  // namespace pantheon::config

#include "model/tokenizer/unicode.h"

#include <algorithm>
#include <vector>

namespace pantheon::model {
namespace {

constexpr std::uint32_t kCodePoints = 0x110000;

struct ClassRange {
    std::uint32_t first;
    std::uint32_t last;
    CharClass char_class;
};

constexpr ClassRange kRanges[] = {
#include "model/tokenizer/unicode_ranges.inc"
};

}  // namespace

const CharClass* char_class_table() {
    // 1.1 MB, of which ordinary text touches a few cache lines; the ranges are what is checked in.
    static const std::vector<CharClass> table = [] {
        std::vector<CharClass> t(kCodePoints, CharClass::other);
        for (const ClassRange& r : kRanges)
            std::fill(t.begin() + r.first, t.begin() + r.last + 1, r.char_class);
        return t;
    }();
    return table.data();
}

CharClass char_class(std::uint32_t code_point) {
    return code_point < kCodePoints ? char_class_table()[code_point] : CharClass::other;
}

}  // namespace pantheon::model

#include "runtime/base/utf8.h"

#include <gtest/gtest.h>

namespace pantheon {
namespace {

struct Case {
    const char* name;
    std::string_view text;
    std::size_t n_valid;
};

constexpr Case kCases[] = {
    {"empty", "", 0},
    {"ascii over a word", "0123456789abc", 13},
    {"two, three and four bytes", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9},
    {"lowest and highest of each length",
     "\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", 18},
    {"around the surrogates", "\xed\x9f\xbf\xee\x80\x80", 6},
    {"surrogate", "a\xed\xa0\x80", 1},
    {"overlong slash", "ab\xc0\xaf", 2},
    {"overlong of three", "\xe0\x9f\xbf", 0},
    {"overlong of four", "\xf0\x8f\xbf\xbf", 0},
    {"past U+10FFFF", "\xf4\x90\x80\x80", 0},
    {"lone continuation", "a\x80", 1},
    {"lead 0xf5 and 0xff", "\xf5\x80\x80\x80\xff", 0},
    {"cut character", "abc\xf0\x9f\x98", 3},
    {"bad byte after eight good ones", "01234567\xff", 8},
};

TEST(Utf8Test, AcceptsExactlyWhatRfc3629Does) {
    for (const Case& c : kCases) {
        SCOPED_TRACE(c.name);
        EXPECT_EQ(valid_utf8_prefix(c.text), c.n_valid);
        EXPECT_EQ(is_strict_utf8(c.text), c.n_valid == c.text.size());
    }
}

TEST(Utf8Test, ClipsBetweenCharacters) {
    EXPECT_EQ(clip_utf8("abc", 3), "abc");
    EXPECT_EQ(clip_utf8("a\xe2\x82\xac"
                        "b",
                        3),
              "a");
    EXPECT_EQ(clip_utf8("a\xe2\x82\xac"
                        "b",
                        4),
              "a\xe2\x82\xac");
    EXPECT_EQ(clip_utf8("\xe2\x82\xac", 0), "");
}

}  // namespace
}  // namespace pantheon

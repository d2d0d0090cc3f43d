#include "model/tokenizer/unicode.h"

#include <gtest/gtest.h>

#include <array>

#include "model/tokenizer/utf8.h"

namespace pantheon::model {
namespace {

TEST(Unicode, ClassesFollowTheCharacterDatabase) {
    struct Case {
        std::uint32_t code_point;
        CharClass char_class;
    };
    constexpr Case kCases[] = {
        {'a', CharClass::letter},         {'Z', CharClass::letter},         {0xAA, CharClass::letter},
        {0x4E2D, CharClass::letter},      {0x3400, CharClass::letter},      {0xAC00, CharClass::letter},
        {0x301, CharClass::mark},         {0x93F, CharClass::mark},         {0xFE0F, CharClass::mark},
        {'0', CharClass::number},         {0xBD, CharClass::number},        {0x2167, CharClass::number},
        {0xFF12, CharClass::number},      {0x3007, CharClass::number},      {' ', CharClass::white_space},
        {'\t', CharClass::white_space},   {0x85, CharClass::white_space},   {0xA0, CharClass::white_space},
        {0x3000, CharClass::white_space}, {0x2028, CharClass::white_space}, {0x200B, CharClass::other},
        {0x1C, CharClass::other},         {'_', CharClass::other},          {0x1F642, CharClass::other},
        {0x378, CharClass::other},        {0xD800, CharClass::other},       {0xE000, CharClass::other},
        {0x10FFFF, CharClass::other},     {0x110000, CharClass::other},     {0xFFFFFFFF, CharClass::other},
    };
    for (const Case& c : kCases)
        EXPECT_EQ(char_class(c.code_point), c.char_class) << std::hex << c.code_point;
}

TEST(Unicode, CountsTheClassesOfVersion15) {
    std::array<int, 5> n{};
    for (std::uint32_t c = 0; c < 0x110000; ++c) ++n[static_cast<std::size_t>(char_class(c))];
    EXPECT_EQ(n[static_cast<std::size_t>(CharClass::white_space)], 25);
    EXPECT_EQ(n[static_cast<std::size_t>(CharClass::letter)], 136'104);
    EXPECT_EQ(n[static_cast<std::size_t>(CharClass::mark)], 2'450);
    EXPECT_EQ(n[static_cast<std::size_t>(CharClass::number)], 1'831);
}

// llama.cpp has Unicode 15.1. Of what 15.1 added only CJK extension I changes a class here (the five new
// ideographic description characters are symbols, hence `other` in both): 622 ideographs that we split like
// punctuation.
TEST(Unicode, LacksOnlyTheIdeographsThatVersion15Point1Added) {
    constexpr std::uint32_t kFirst = 0x2EBF0;
    constexpr std::uint32_t kLast = 0x2EE5D;
    static_assert(kLast - kFirst + 1 == 622);
    for (std::uint32_t c = kFirst; c <= kLast; ++c) EXPECT_EQ(char_class(c), CharClass::other);
    for (const std::uint32_t c : {0x2FFCU, 0x2FFDU, 0x2FFEU, 0x2FFFU, 0x31EFU})
        EXPECT_EQ(char_class(c), CharClass::other);
    EXPECT_EQ(char_class(kFirst - 0x10), CharClass::letter);  // the end of extension F
}

TEST(Utf8, StrictCheckRefusesWhatTheStandardRefuses) {
    for (const char* good :
         {"", "a", "\u00E9", "\u4E2D", "\U0001F642", "\uFFFD", "\uD7FF", "\uE000", "\U0010FFFF"})
        EXPECT_TRUE(is_valid_utf8(good)) << good;
    for (const char* bad :
         {"\x80", "\xC0\x80", "\xC1\xBF", "\xC3", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xE2\x82",
          "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "abcdefgh\x80"})
        EXPECT_FALSE(is_valid_utf8(bad)) << bad;
    EXPECT_EQ(valid_utf8_prefix("abcdefghij\xE2\x82"), 10U);
}

TEST(Utf8, LenientReadingReplacesOneByteAtATime) {
    struct Case {
        std::string_view in, out;
    };
    using namespace std::string_view_literals;
    constexpr Case kCases[] = {
        {"ok \u4E2D"sv, "ok \u4E2D"sv},
        {"a\xE2\x82"sv, "a\uFFFD\uFFFD"sv},  // a cut three-byte character: two marks, not one
        {"\xE2\x82z"sv, "\uFFFD\uFFFDz"sv},
        {"\xC0\x80"sv, "\0"sv},  // overlong forms are read
        {"\xE0\x99\xAD"sv, "\u066D"sv},
        {"\xED\xA0\x80"sv, "\xED\xA0\x80"sv},  // a surrogate stays
        {"\xF4\x90\x80\x80"sv, "\uFFFD\uFFFD\uFFFD\uFFFD"sv},
        {"\x80\xFFx"sv, "\uFFFD\uFFFDx"sv},
        {"\xF0\x9F\x99"sv, "\uFFFD\uFFFD\uFFFD"sv},
    };
    for (const Case& c : kCases) EXPECT_EQ(lenient_utf8(c.in), c.out) << c.out;
}

TEST(Utf8, RepairGivesOneMarkForEachBadByte) {
    EXPECT_EQ(to_valid_utf8("a\xE2\x82 b\xC0\x80\xED\xA0\x80"),
              "a\uFFFD\uFFFD b\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD");
    EXPECT_EQ(to_valid_utf8("\U0001F642"), "\U0001F642");
}

}  // namespace
}  // namespace pantheon::model

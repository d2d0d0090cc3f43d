#include "model/tokenizer/added_tokens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace pantheon::model {
namespace {

using Entry = AddedTokenMatcher::Entry;

/// "begin-end:id" of each match.
std::vector<std::string> found(const AddedTokenMatcher& matcher, std::string_view text,
                               const std::vector<TextRange>& trusted) {
    std::vector<std::string> result;
    for (const auto& m : matcher.find(text, trusted))
        result.push_back(std::to_string(m.begin) + "-" + std::to_string(m.end) + ":" + std::to_string(m.id));
    return result;
}

using Found = std::vector<std::string>;

TEST(AddedTokens, PreferTheLongestTextWhereTwoOverlap) {
    const AddedTokenMatcher m({{"ab", 0}, {"abc", 1}, {"bcde", 2}, {"x", 3}});
    EXPECT_EQ(found(m, "abcx", {}), (Found{"0-3:1", "3-4:3"}));
    EXPECT_EQ(found(m, "abcdex", {}), (Found{"1-5:2", "5-6:3"}));  // not the leftmost
    EXPECT_EQ(found(m, "abab", {}), (Found{"0-2:0", "2-4:0"}));
    EXPECT_EQ(found(m, "", {}), Found{});
}

TEST(AddedTokens, ControlTokensMatchOnlyWhollyInsideATrustedRange) {
    const AddedTokenMatcher m({{"<s>", 7, true}, {"<u>", 8, false}});
    const std::string text = "<s><u><s>";
    EXPECT_EQ(found(m, text, {}), (Found{"3-6:8"}));
    EXPECT_EQ(found(m, text, {{0, 9}}), (Found{"0-3:7", "3-6:8", "6-9:7"}));
    EXPECT_EQ(found(m, text, {{0, 3}}), (Found{"0-3:7", "3-6:8"}));
    EXPECT_EQ(found(m, text, {{1, 9}}), (Found{"3-6:8", "6-9:7"}));
    EXPECT_EQ(found(m, text, {{0, 2}, {6, 8}}), (Found{"3-6:8"}));
    EXPECT_EQ(found(m, text, {{0, 0}, {2, 2}, {6, 9}}), (Found{"3-6:8", "6-9:7"}));
}

TEST(AddedTokens, AnUntrustedControlTokenDoesNotHideAShorterOne) {
    const AddedTokenMatcher m({{"<think><s>", 1, true}, {"<think>", 2, false}});
    EXPECT_EQ(found(m, "<think><s>", {}), (Found{"0-7:2"}));
}

/// The reference's way: one token after the other, longest first, in what is left of the text.
Found by_definition(std::vector<Entry> entries, std::string_view text) {
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
        return a.text.size() != b.text.size() ? a.text.size() > b.text.size() : a.id < b.id;
    });
    struct Taken {
        std::size_t begin, end;
        TokenId id;
    };
    std::vector<Taken> taken;
    for (const Entry& e : entries)
        for (std::size_t at = text.find(e.text); at != std::string_view::npos;) {
            const std::size_t end = at + e.text.size();
            const bool is_free = std::none_of(taken.begin(), taken.end(),
                                              [&](const Taken& t) { return t.begin < end && at < t.end; });
            if (is_free) taken.push_back({at, end, e.id});
            at = text.find(e.text, is_free ? end : at + 1);
        }
    std::sort(taken.begin(), taken.end(), [](const Taken& a, const Taken& b) { return a.begin < b.begin; });
    Found result;
    for (const Taken& t : taken)
        result.push_back(std::to_string(t.begin) + "-" + std::to_string(t.end) + ":" + std::to_string(t.id));
    return result;
}

TEST(AddedTokens, MatchOneTokenAfterTheOtherOnRandomTexts) {
    std::mt19937 random(3);
    const auto word = [&](std::size_t n) {
        std::string w;
        for (std::size_t i = 0; i < n; ++i) w += static_cast<char>('a' + random() % 2);
        return w;
    };
    for (int round = 0; round < 500; ++round) {
        std::vector<Entry> entries;
        for (TokenId id = 0; id < 6; ++id) {
            Entry e{word(1 + random() % 5), id, false};
            const bool is_new = std::none_of(entries.begin(), entries.end(),
                                             [&](const Entry& x) { return x.text == e.text; });
            if (is_new) entries.push_back(std::move(e));
        }
        const std::string text = word(40);
        EXPECT_EQ(found(AddedTokenMatcher(entries), text, {}), by_definition(entries, text)) << text;
    }
}

}  // namespace
}  // namespace pantheon::model

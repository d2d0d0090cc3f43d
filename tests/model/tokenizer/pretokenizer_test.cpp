#include "model/tokenizer/pretokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/tokenizer/utf8.h"
#include "tests/model/tokenizer/small_vocabulary.h"

namespace pantheon::model {
namespace {

std::vector<std::string> split(PreTokenizer pre, std::string_view text) {
    std::vector<std::string> pieces;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = piece_end(pre, text, begin);
        pieces.emplace_back(text.substr(begin, end - begin));
        begin = end;
    }
    return pieces;
}

struct Case {
    const char* text;
    std::vector<std::string> pieces;
};

// What the reference implementation's splitter gives.
const Case kQwen35Cases[] = {
    {"I'M sure they'll don't 'tis", {"I", "'M", " sure", " they", "'ll", " don", "'t", " '", "tis"}},
    {"abc123 def", {"abc", "1", "2", "3", " def"}},
    {"foo  bar", {"foo", " ", " bar"}},
    {"  \n\n  x", {"  \n\n", " ", " x"}},
    {"hi   ", {"hi", "   "}},
    {"x=1;\n\n\ty", {"x", "=", "1", ";\n\n", "\ty"}},
    {"\t\tif x:\n    y", {"\t", "\tif", " x", ":\n", "   ", " y"}},
    {"_foo.bar(baz)", {"_foo", ".bar", "(baz", ")"}},
    {"a\u0301b \u0301x", {"a\u0301b", " \u0301x"}},
    {"\uFF11\uFF12", {"\uFF11", "\uFF12"}},
    {"3\u00BD\u2167", {"3", "\u00BD", "\u2167"}},
    {"a\r\n\r\nb", {"a", "\r\n\r\n", "b"}},
    {"$100.50%", {"$", "1", "0", "0", ".", "5", "0", "%"}},
    {"\u2026!?\r\n z", {"\u2026!?\r\n", " z"}},
    {" \u00A0x", {" ", "\u00A0x"}},
    {" 's", {" '", "s"}},
    {"'\u017F 'S 'RE 'r", {"'\u017F", " '", "S", " '", "RE", " '", "r"}},
    {"\u0301\u0301!", {"\u0301\u0301", "!"}},
    {"\n", {"\n"}},
    {" ", {" "}},
    {"\u3000\u3000\u3000z", {"\u3000\u3000", "\u3000z"}},
    {"a\u2028\n\u2028b", {"a", "\u2028\n", "\u2028b"}},
};

TEST(PreTokenizer, SplitsAsTheReferenceDoes) {
    for (const Case& c : kQwen35Cases) {
        SCOPED_TRACE(c.text);
        EXPECT_EQ(split(PreTokenizer::qwen35, c.text), c.pieces);
    }
}

// Hindi, Thai and decomposed accents are where the two patterns part.
const Case kQwen2Cases[] = {
    {"a\u0301b \u0301x", {"a", "\u0301b", " \u0301", "x"}},
    {"\u0939\u093F\u0928\u094D\u0926\u0940", {"\u0939", "\u093F\u0928", "\u094D\u0926", "\u0940"}},
    {"\u0E01\u0E34\u0E19", {"\u0E01", "\u0E34\u0E19"}},
    {"!\u0301\n\n x", {"!\u0301\n\n", " x"}},
    {"I'M sure", {"I", "'M", " sure"}},
};

TEST(PreTokenizer, CountsMarksAsPunctuationForQwen2) {
    for (const Case& c : kQwen2Cases) {
        SCOPED_TRACE(c.text);
        EXPECT_EQ(split(PreTokenizer::qwen2, c.text), c.pieces);
    }
}

TEST(PreTokenizer, KeepsHindiWordsWholeForQwen35) {
    EXPECT_EQ(split(PreTokenizer::qwen35, "\u0939\u093F\u0928\u094D\u0926\u0940 \u0939\u0948"),
              (std::vector<std::string>{"\u0939\u093F\u0928\u094D\u0926\u0940", " \u0939\u0948"}));
}

TEST(PreTokenizer, CoversEveryTextWithoutGaps) {
    for (const PreTokenizer pre : {PreTokenizer::qwen2, PreTokenizer::qwen35})
        for (std::uint64_t seed = 0; seed < 200; ++seed) {
            const std::string text = random_valid_text(seed, 50);
            std::string joined;
            for (const std::string& piece : split(pre, text)) {
                EXPECT_FALSE(piece.empty());
                EXPECT_TRUE(is_valid_utf8(piece));
                joined += piece;
            }
            EXPECT_EQ(joined, text);
        }
}

TEST(PreTokenizer, KnowsItsTwoNames) {
    EXPECT_EQ(parse_pre_tokenizer("qwen35"), PreTokenizer::qwen35);
    EXPECT_EQ(parse_pre_tokenizer("qwen2"), PreTokenizer::qwen2);
    EXPECT_FALSE(parse_pre_tokenizer("llama-bpe"));
    EXPECT_EQ(pre_tokenizer_name(PreTokenizer::qwen35), "qwen35");
    EXPECT_EQ(pre_tokenizer_name(PreTokenizer::qwen2), "qwen2");
}

}  // namespace
}  // namespace pantheon::model

// What Tokenizer::load refuses, and how it says so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/model/tokenizer/small_vocabulary.h"

namespace pantheon::model {
namespace {

using testing::HasSubstr;

GgufMetadata without(const GgufMetadata& metadata, std::string_view key) {
    GgufMetadata result;
    for (const auto& entry : metadata.entries())
        if (entry.key != key) result.add(entry);
    return result;
}

GgufMetadata with_int(const SmallVocabulary& v, std::string key, std::int64_t value) {
    GgufMetadata m = v.metadata();
    m.add({std::move(key), 4, GgufScalar(value)});
    return m;
}

std::string refusal(const GgufMetadata& metadata, std::int64_t n_embd_rows) {
    const auto t = Tokenizer::load(metadata, n_embd_rows);
    if (t) return "loaded";
    EXPECT_EQ(t.error().code(), Code::invalid_argument);
    return t.error().message();
}

std::int64_t rows(const SmallVocabulary& v) {
    return static_cast<std::int64_t>(v.tokens.size());
}

TEST(TokenizerLoad, NamesAMissingKey) {
    const SmallVocabulary v = SmallVocabulary::usual();
    for (const char* key : {"tokenizer.ggml.model", "tokenizer.ggml.pre", "tokenizer.ggml.tokens",
                            "tokenizer.ggml.token_type", "tokenizer.ggml.merges"})
        EXPECT_THAT(refusal(without(v.metadata(), key), rows(v)), HasSubstr(std::string(key) + ": missing"));
}

TEST(TokenizerLoad, RefusesUnknownKindsNamingTheAcceptedOnes) {
    SmallVocabulary v = SmallVocabulary::usual();
    v.pre = "llama-bpe";
    EXPECT_EQ(refusal(v.metadata(), rows(v)),
              "tokenizer.ggml.pre: \"llama-bpe\" is unknown, accepted: qwen2, qwen35");
    v.pre = "qwen35";
    v.model = "llama";
    EXPECT_EQ(refusal(v.metadata(), rows(v)), "tokenizer.ggml.model: \"llama\" is unknown, accepted: gpt2");
}

TEST(TokenizerLoad, ComparesSizes) {
    SmallVocabulary v = SmallVocabulary::usual();
    EXPECT_EQ(refusal(v.metadata(), rows(v) + 1),
              "tokenizer.ggml.tokens: 273 entries, but the token embedding has "
              "274 rows");
    EXPECT_THAT(refusal(v.metadata(), -1), HasSubstr("tokenizer.ggml.tokens"));
    v.types.pop_back();
    EXPECT_EQ(refusal(v.metadata(), rows(v)), "tokenizer.ggml.token_type: 272 entries, want 273");
    SmallVocabulary empty;
    EXPECT_THAT(refusal(empty.metadata(), 0), HasSubstr("tokenizer.ggml.tokens"));
}

TEST(TokenizerLoad, RefusesTypesThatDoNotExist) {
    for (const std::int64_t type : {0, 7, -1}) {
        SmallVocabulary v = SmallVocabulary::usual();
        v.types[3] = type;
        EXPECT_THAT(refusal(v.metadata(), rows(v)), HasSubstr("tokenizer.ggml.token_type: entry 3 is"));
    }
}

TEST(TokenizerLoad, RefusesTwoEntriesOfOneText) {
    SmallVocabulary v = SmallVocabulary::usual();
    v.add("hello", TokenKind::normal);
    EXPECT_THAT(refusal(v.metadata(), rows(v)), HasSubstr("are the same text"));
}

TEST(TokenizerLoad, RefusesIdsOutsideTheVocabulary) {
    SmallVocabulary v = SmallVocabulary::usual();
    v.eos = rows(v);
    EXPECT_THAT(refusal(v.metadata(), rows(v)), HasSubstr("tokenizer.ggml.eos_token_id"));
    v.eos = -1;
    for (const char* key :
         {"tokenizer.ggml.bos_token_id", "tokenizer.ggml.padding_token_id", "tokenizer.ggml.eot_token_id"})
        EXPECT_THAT(refusal(with_int(v, key, 1'000'000), rows(v)), HasSubstr(key));
}

TEST(TokenizerLoad, SkipsMergesThatCannotFire) {
    SmallVocabulary v = SmallVocabulary::usual();
    for (const char* line : {"", " ", "x", "x ", " x", "nothing here", "h nosuch"}) v.merges.push_back(line);
    const auto t = v.tokenizer();
    ASSERT_TRUE(t);
    EXPECT_EQ(t->encode("hello x", false).size(), 3U);
}

TEST(TokenizerLoad, AcceptsAVocabularyWithoutAllBytes) {
    SmallVocabulary v;
    v.add("a", TokenKind::normal);
    const auto t = v.tokenizer();
    ASSERT_TRUE(t);
    EXPECT_EQ(t->encode("aba", false), (std::vector<TokenId>{0, 0}));
    EXPECT_TRUE(t->end_of_generation().empty());
}

TEST(TokenizerLoad, HonoursThePreTokenizerKey) {
    SmallVocabulary v = SmallVocabulary::bytes();
    v.merges.push_back("e Ì");  // "e" and the first byte of a combining mark
    v.add("eÌ", TokenKind::normal);
    EXPECT_EQ(v.tokenizer()->encode("e\u0301", false).size(), 2U);
    v.pre = "qwen2";  // the mark is a piece of its own: the merge never sees both
    EXPECT_EQ(v.tokenizer()->encode("e\u0301", false).size(), 3U);
    EXPECT_EQ(v.tokenizer()->pre(), "qwen2");
}

TEST(TokenizerLoad, WarnsOfAQwen2KeyOnTheQwen35Vocabulary) {
    SmallVocabulary v;
    for (int i = 0; i < 248'320; ++i) v.add("t" + std::to_string(i), TokenKind::normal);
    v.pre = "qwen2";
    testing::internal::CaptureStderr();
    EXPECT_TRUE(v.tokenizer());
    EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("tokenizer.ggml.pre is qwen2"));
    v.pre = "qwen35";
    testing::internal::CaptureStderr();
    EXPECT_TRUE(v.tokenizer());
    EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::Not(HasSubstr("tokenizer.ggml.pre")));
}

}  // namespace
}  // namespace pantheon::model

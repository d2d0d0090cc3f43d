#include "model/tokenizer/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/model/tokenizer/small_vocabulary.h"

namespace pantheon::model {
namespace {

using Ids = std::vector<TokenId>;

TEST(Tokenizer, MergesByRankAndKeepsPiecesApart) {
    const auto t = SmallVocabulary::usual().tokenizer();
    ASSERT_TRUE(t);
    EXPECT_EQ(t->encode("hello hello", false), (Ids{t->find("hello"), t->find("Ġhello")}));
    EXPECT_EQ(t->encode("aaaaa", false), (Ids{t->find("aaaa"), 'a'}));
    EXPECT_EQ(t->encode("hell", false), (Ids{t->find("hell")}));
    EXPECT_EQ(t->encode("h1e", false), (Ids{'h', '1', 'e'}));
    EXPECT_EQ(t->encode("", false), Ids{});
    EXPECT_EQ(t->encode("\u00E9", false), (Ids{0xC3, 0xA9}));
}

TEST(Tokenizer, ControlTokensComeOnlyFromTrustedText) {
    const auto t = SmallVocabulary::usual().tokenizer();
    ASSERT_TRUE(t);
    const TokenId start = t->find("<|im_start|>");
    const std::string text = "<|im_start|>";
    EXPECT_EQ(t->encode(text, true), Ids{start});
    EXPECT_THAT(t->encode(text, false), testing::Not(testing::Contains(start)));
    EXPECT_EQ(t->decode(t->encode(text, false), false), text);
    // User-defined tokens match whoever wrote them, also one that the template and the user spell together.
    EXPECT_EQ(t->encode("<think>a</think>", false), (Ids{t->find("<think>"), 'a', t->find("</think>")}));
    const TextRange half{0, 3};
    EXPECT_EQ(t->encode("<think>", std::span(&half, 1)), Ids{t->find("<think>")});
    const TextRange some{0, text.size()};
    EXPECT_EQ(t->encode(text + "h" + text, std::span(&some, 1)).front(), start);
    EXPECT_EQ(t->encode(text + "h" + text, std::span(&some, 1)).back(), '>');
}

TEST(Tokenizer, JoinsTemplateAndUserTextBeforeSplitting) {
    const auto t = SmallVocabulary::usual().tokenizer();
    ASSERT_TRUE(t);
    const std::string text =
        "<|im_start|>hel"
        "lo";  // "hel" from the template, "lo" from the user
    const TextRange trusted{0, 15};
    EXPECT_EQ(t->encode(text, std::span(&trusted, 1)), (Ids{t->find("<|im_start|>"), t->find("hello")}));
}

TEST(Tokenizer, ReadsInvalidUtf8AsTheReferenceDoes) {
    const auto t = SmallVocabulary::bytes().tokenizer();
    ASSERT_TRUE(t);
    EXPECT_EQ(t->decode(t->encode("a\xE2\x82", false), true), "a\uFFFD\uFFFD");
    EXPECT_EQ(t->encode("\xC0\x80", false), Ids{0});
    EXPECT_EQ(t->encode("\xED\xA0\x80", false), (Ids{0xED, 0xA0, 0x80}));
}

TEST(Tokenizer, RepairsEachFragmentAfterAddedTokensAreFound) {
    const auto t = SmallVocabulary::usual().tokenizer();
    ASSERT_TRUE(t);
    const auto ids = t->encode("\xE2<think>\x82", false);
    EXPECT_EQ(t->decode(ids, true), "\uFFFD<think>\uFFFD");
    EXPECT_THAT(ids, testing::Contains(t->find("<think>")));
}

TEST(Tokenizer, DecodeOfEncodeIsTheText) {
    const auto qwen35 = SmallVocabulary::usual().tokenizer();
    SmallVocabulary v = SmallVocabulary::usual();
    v.pre = "qwen2";
    const auto qwen2 = v.tokenizer();
    ASSERT_TRUE(qwen35 && qwen2);
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        const std::string text = random_valid_text(seed, 80) + (seed % 3 ? "<think>" : "<|im_end|>");
        for (const auto& t : {qwen35, qwen2})
            for (const bool special : {false, true})
                EXPECT_EQ(t->decode(t->encode(text, special), true), text) << "seed " << seed;
    }
}

TEST(Tokenizer, SurvivesRandomBytes) {
    const auto t = SmallVocabulary::usual().tokenizer();
    ASSERT_TRUE(t);
    std::mt19937 random(5);
    for (int round = 0; round < 500; ++round) {
        std::string bytes(random() % 60, '\0');
        for (char& c : bytes) c = static_cast<char>(random());
        for (const TokenId id : t->encode(bytes, round % 2 == 0)) EXPECT_TRUE(t->is_valid(id));
    }
}

TEST(Tokenizer, PiecesFollowTheKindOfToken) {
    const auto t = SmallVocabulary::usual().tokenizer();
    ASSERT_TRUE(t);
    EXPECT_EQ(t->piece(t->find("Ġhello"), false), " hello");
    EXPECT_EQ(t->piece(0xE2, false), "\xE2");
    EXPECT_EQ(t->piece(t->find("<|im_end|>"), false), "");
    EXPECT_EQ(t->piece(t->find("<|im_end|>"), true), "<|im_end|>");
    EXPECT_EQ(t->piece(t->find("</think>"), false), "</think>");  // user-defined ones are text
    EXPECT_EQ(t->piece(t->find("[PAD271]"), true), "");
    EXPECT_EQ(t->piece(-1, true), "");
    EXPECT_EQ(t->piece(t->n_vocab(), true), "");
    const Ids ids{'a', t->find("<|im_end|>"), -5, t->find("<think>"), t->find("[PAD272]"), 'b'};
    EXPECT_EQ(t->decode(ids, false), "a<think>b");
    EXPECT_EQ(t->decode(ids, true), "a<|im_end|><think>b");
}

TEST(Tokenizer, EndOfGenerationIsASetNotOneId) {
    SmallVocabulary v = SmallVocabulary::usual();
    v.eos = v.add("<the-end>", TokenKind::control);
    const auto t = v.tokenizer();
    ASSERT_TRUE(t);
    for (const char* text : {"<|endoftext|>", "<|im_end|>", "<|fim_pad|>", "<the-end>"})
        EXPECT_TRUE(t->is_end_of_generation(t->find(text))) << text;
    for (const char* text : {"<|im_start|>", "</think>", "</tool_call>", "a"})
        EXPECT_FALSE(t->is_end_of_generation(t->find(text))) << text;
    EXPECT_EQ(t->end_of_generation().size(), 4U);
    EXPECT_FALSE(t->is_end_of_generation(-1));
}

TEST(Tokenizer, UnusedIdsAreNeverSampledNorMatched) {
    const auto t = SmallVocabulary::usual().tokenizer();
    ASSERT_TRUE(t);
    EXPECT_THAT(t->never_sampled(), testing::ElementsAre(t->find("[PAD271]"), t->find("[PAD272]")));
    EXPECT_EQ(t->encode("[PAD271]", true).size(), 8U);
    EXPECT_EQ(t->kind(t->find("[PAD271]")), TokenKind::unused);
}

TEST(Tokenizer, OverridesTheTypeOfEntriesThatAreControlByText) {
    SmallVocabulary v = SmallVocabulary::usual();
    const TokenId slash_s = v.add("</s>", TokenKind::normal);
    const auto t = v.tokenizer();
    ASSERT_TRUE(t);
    EXPECT_EQ(t->kind(t->find("<|fim_pad|>")), TokenKind::control);
    EXPECT_EQ(t->kind(slash_s), TokenKind::control);
    EXPECT_TRUE(t->is_end_of_generation(slash_s));
    EXPECT_EQ(t->encode("</s>", true), Ids{slash_s});
    EXPECT_EQ(t->encode("</s>", false).size(), 4U);
    EXPECT_EQ(t->kind(t->find("<think>")), TokenKind::user_defined);
}

TEST(Tokenizer, EmitsBytesWhereAMergeMakesNoEntry) {
    SmallVocabulary v = SmallVocabulary::bytes();
    v.merges.push_back("x y");   // "xy" is no entry
    v.merges.push_back("xy z");  // but this one is
    const TokenId xyz = v.add("xyz", TokenKind::normal);
    const auto t = v.tokenizer();
    ASSERT_TRUE(t);
    EXPECT_EQ(t->encode("xyw", false), (Ids{'x', 'y', 'w'}));
    EXPECT_EQ(t->encode("xyz", false), Ids{xyz});
}

TEST(Tokenizer, EncodesALongRunOfOneLetterInLittleTime) {
    const auto t = SmallVocabulary::usual().tokenizer();
    ASSERT_TRUE(t);
    EXPECT_EQ(t->encode(std::string(1 << 20, 'a'), false), Ids(1 << 18, t->find("aaaa")));
}

}  // namespace
}  // namespace pantheon::model

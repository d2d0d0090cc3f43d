#include "tests/model/tokenizer/small_vocabulary.h"

#include <gtest/gtest.h>

#include <random>
#include <utility>

#include "model/tokenizer/byte_alphabet.h"
#include "model/tokenizer/utf8.h"

namespace pantheon::model {
namespace {

constexpr std::int32_t kGgufInt32 = 5;
constexpr std::int32_t kGgufUint32 = 4;
constexpr std::int32_t kGgufString = 8;
constexpr std::int32_t kGgufArray = 9;

}  // namespace

SmallVocabulary SmallVocabulary::bytes() {
    SmallVocabulary v;
    for (const std::string& character : byte_alphabet()) v.add(character, TokenKind::normal);
    return v;
}

SmallVocabulary SmallVocabulary::usual() {
    SmallVocabulary v = bytes();
    v.add_merge("l", "l");
    v.add_merge("h", "e");
    v.add_merge("he", "ll");
    v.add_merge("hell", "o");
    v.add_merge("Ġ", "hello");
    v.add_merge("a", "a");
    v.add_merge("aa", "aa");
    for (const char* text : {"<|endoftext|>", "<|im_start|>"}) v.add(text, TokenKind::control);
    v.eos = v.add("<|im_end|>", TokenKind::control);
    for (const char* text : {"<think>", "</think>", "<tool_call>", "</tool_call>", "<|fim_pad|>"})
        v.add(text, TokenKind::user_defined);
    v.add("[PAD271]", TokenKind::unused);
    v.add("[PAD272]", TokenKind::unused);
    return v;
}

TokenId SmallVocabulary::add(std::string text, TokenKind kind) {
    tokens.push_back(std::move(text));
    types.push_back(static_cast<std::int64_t>(kind));
    return static_cast<TokenId>(tokens.size() - 1);
}

void SmallVocabulary::add_merge(const std::string& left, const std::string& right) {
    merges.push_back(left + " " + right);
    add(left + right, TokenKind::normal);
}

GgufMetadata SmallVocabulary::metadata() const {
    GgufMetadata m;
    m.add({"tokenizer.ggml.model", kGgufString, GgufScalar(model)});
    m.add({"tokenizer.ggml.pre", kGgufString, GgufScalar(pre)});
    m.add({"tokenizer.ggml.tokens", kGgufArray, GgufArray{kGgufString, tokens}});
    m.add({"tokenizer.ggml.token_type", kGgufArray, GgufArray{kGgufInt32, types}});
    m.add({"tokenizer.ggml.merges", kGgufArray, GgufArray{kGgufString, merges}});
    if (eos >= 0) m.add({"tokenizer.ggml.eos_token_id", kGgufUint32, GgufScalar(eos)});
    return m;
}

std::shared_ptr<const Tokenizer> SmallVocabulary::tokenizer() const {
    auto t = Tokenizer::load(metadata(), static_cast<std::int64_t>(tokens.size()));
    if (!t) {
        ADD_FAILURE() << t.error().to_string();
        return nullptr;
    }
    return std::move(*t);
}

std::string random_valid_text(std::uint64_t seed, std::size_t n_characters) {
    std::mt19937_64 random(seed);
    const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    constexpr std::string_view kAscii = " \n\r\t'sStTreVELlmMdD019abcXYZ_.,;!?(){}[]=+-*/<>|haello";
    constexpr std::uint32_t kOthers[] = {0xA0,   0x3000, 0x0301, 0x0939, 0x093F, 0x0928, 0x094D,  0x0E34,
                                         0x4E2D, 0x304B, 0xD55C, 0x00BD, 0x2167, 0xFF12, 0x1F642, 0x200D};
    std::string text;
    for (std::size_t i = 0; i < n_characters; ++i) {
        switch (below(4)) {
            case 0:
            case 1:
                text += kAscii[below(kAscii.size())];
                break;
            case 2:
                append_utf8(text, kOthers[below(std::size(kOthers))]);
                break;
            default: {
                std::uint32_t c = below(0x110000 - 0x800);
                if (c >= 0xD800) c += 0x800;  // no surrogates
                append_utf8(text, c);
            }
        }
    }
    return text;
}

}  // namespace pantheon::model

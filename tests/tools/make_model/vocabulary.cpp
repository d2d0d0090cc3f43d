#include "tests/tools/make_model/vocabulary.h"

#include <algorithm>
#include <stdexcept>

#include "tests/tools/make_model/bpe_trainer.h"

namespace pantheon::test {

std::int64_t Vocabulary::find(const std::string& token) const {
    const auto it = std::find(tokens.begin(), tokens.end(), token);
    return it == tokens.end() ? -1 : it - tokens.begin();
}

void Vocabulary::add(std::string token, TokenType type) {
    tokens.push_back(std::move(token));
    types.push_back(static_cast<std::int32_t>(type));
}

void Vocabulary::pad_to(std::size_t n_tokens) {
    while (tokens.size() < n_tokens) add("[PAD" + std::to_string(tokens.size()) + "]", TokenType::unused);
}

const std::vector<SpecialToken>& special_tokens() {
    static const std::vector<SpecialToken> kTokens = {
        {"<|endoftext|>", TokenType::control},
        {"<|im_start|>", TokenType::control},
        {"<|im_end|>", TokenType::control},
        {"<|object_ref_start|>", TokenType::control},
        {"<|object_ref_end|>", TokenType::control},
        {"<|box_start|>", TokenType::control},
        {"<|box_end|>", TokenType::control},
        {"<|quad_start|>", TokenType::control},
        {"<|quad_end|>", TokenType::control},
        {"<|vision_start|>", TokenType::control},
        {"<|vision_end|>", TokenType::control},
        {"<|vision_pad|>", TokenType::control},
        {"<|image_pad|>", TokenType::control},
        {"<|video_pad|>", TokenType::control},
        {"<tool_call>", TokenType::user_defined},
        {"</tool_call>", TokenType::user_defined},
        {"<|fim_prefix|>", TokenType::control},
        {"<|fim_middle|>", TokenType::control},
        {"<|fim_suffix|>", TokenType::control},
        {"<|fim_pad|>", TokenType::control},
        {"<|repo_name|>", TokenType::control},
        {"<|file_sep|>", TokenType::control},
        {"<tool_response>", TokenType::user_defined},
        {"</tool_response>", TokenType::user_defined},
        {"<think>", TokenType::user_defined},
        {"</think>", TokenType::user_defined},
        {"<|audio_start|>", TokenType::control},
        {"<|audio_end|>", TokenType::control},
        {"<tts_pad>", TokenType::control},
        {"<tts_text_bos>", TokenType::control},
        {"<tts_text_eod>", TokenType::control},
        {"<tts_text_bos_single>", TokenType::control},
        {"<|audio_pad|>", TokenType::control},
    };
    return kTokens;
}

Vocabulary make_vocabulary(std::size_t n_tokens) {
    const std::vector<std::string> alphabet = byte_alphabet();
    const std::size_t n_least = alphabet.size() + special_tokens().size();
    if (n_tokens != 0 && n_tokens < n_least) {
        throw std::invalid_argument("--vocab " + std::to_string(n_tokens) +
                                    ": the bytes and special tokens need " + std::to_string(n_least));
    }
    Vocabulary vocabulary;
    for (const std::string& byte : alphabet) vocabulary.add(byte, TokenType::normal);
    for (const BpeMerge& merge : train_bpe(n_tokens == 0 ? SIZE_MAX : n_tokens - n_least)) {
        vocabulary.merges.push_back(merge.left + " " + merge.right);
        vocabulary.add(merge.left + merge.right, TokenType::normal);
    }
    for (const SpecialToken& token : special_tokens()) vocabulary.add(token.text, token.type);
    vocabulary.pad_to(n_tokens);
    return vocabulary;
}

}  // namespace pantheon::test

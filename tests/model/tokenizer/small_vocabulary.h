// A vocabulary small enough to read: the 256 bytes (id = byte), a few merges, and the added tokens that
// matter.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/gguf/gguf_file.h"
#include "model/tokenizer/tokenizer.h"

namespace pantheon::model {

struct SmallVocabulary {
    std::string model = "gpt2";
    std::string pre = "qwen35";
    std::vector<std::string> tokens;
    std::vector<std::int64_t> types;
    std::vector<std::string> merges;
    std::int64_t eos = -1;  // −1: no key

    /// Bytes only.
    static SmallVocabulary bytes();
    /// Bytes, merges up to " hello", "aa", "aaaa", and added tokens of every type.
    static SmallVocabulary usual();

    TokenId add(std::string text, TokenKind kind);
    /// The merge and the entry it makes; halves in the printable alphabet.
    void add_merge(const std::string& left, const std::string& right);

    GgufMetadata metadata() const;
    /// Loads; the test fails if that does not work.
    std::shared_ptr<const Tokenizer> tokenizer() const;
};

/// Text of random characters: ASCII, white space, letters, marks, numbers, symbols, any valid code point.
std::string random_valid_text(std::uint64_t seed, std::size_t n_characters);

}  // namespace pantheon::model

// Byte-level BPE vocabularies for synthetic models: a small one trained on a list of common words, or a real
// one read from a tokenizer.json.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pantheon::test {

enum class TokenType : std::int32_t { normal = 1, control = 3, user_defined = 4, unused = 5 };

struct Vocabulary {
    std::vector<std::string> tokens;  // ids are positions; ordinary text in the printable-byte alphabet
    std::vector<std::int32_t> types;  // TokenType
    std::vector<std::string> merges;  // "left right", the earlier the stronger

    /// -1 when there is none.
    std::int64_t find(const std::string& token) const;
    void add(std::string token, TokenType type);
    /// Fills up with unused "[PAD<id>]" entries.
    void pad_to(std::size_t n_tokens);
};

/// The special tokens of this model family, by text.
struct SpecialToken {
    const char* text;
    TokenType type;
};
const std::vector<SpecialToken>& special_tokens();

/// n_tokens entries: 256 bytes, as many merges as there is room for (or as the word list gives), the special
/// tokens, and padding. 0: no padding, and every merge the list gives. Throws std::invalid_argument when the
/// bytes and special tokens alone need more.
Vocabulary make_vocabulary(std::size_t n_tokens);

/// From a Hugging Face tokenizer.json; padded to n_tokens unless that is 0. Throws std::runtime_error.
Vocabulary read_tokenizer_json(const std::string& path, std::size_t n_tokens);

}  // namespace pantheon::test

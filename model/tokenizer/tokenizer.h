// Text to token ids and back: the byte-level BPE of Qwen vocabularies as GGUF files carry it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/gguf/gguf_file.h"
#include "runtime/base/ids.h"
#include "runtime/base/status.h"

namespace pantheon::model {

/// Bytes [begin, end) of a text.
struct TextRange {
    std::size_t begin = 0;
    std::size_t end = 0;
};

enum class TokenKind { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

class Tokenizer {
  public:
    /// From the tokenizer.ggml.* keys. invalid_argument names the key that is missing or wrong, and for an unknown
    /// tokenizer.ggml.pre or .model the accepted values. n_embd_rows: rows of the token embedding; sizes must agree.
    static Result<std::shared_ptr<const Tokenizer>> load(const GgufMetadata& metadata, std::int64_t n_embd_rows);
    ~Tokenizer();

    std::int32_t n_vocab() const;
    std::string_view pre() const;  // "qwen35", "qwen2"

    /// Ids of a text. Control tokens match only inside `trusted` ranges (sorted, disjoint); user-defined ones match
    /// everywhere. Invalid UTF-8 is replaced as spec'd (one U+FFFD a byte). No BOS, no EOS.
    std::vector<TokenId> encode(std::string_view text, std::span<const TextRange> trusted) const;
    /// Everything trusted (special = true) or nothing.
    std::vector<TokenId> encode(std::string_view text, bool special) const;

    /// The token's exact bytes. Control tokens give their text only when `special`; unused ones give nothing.
    std::string_view piece(TokenId id, bool special) const;
    /// Concatenated pieces. Ids out of range give nothing; check them first.
    std::string decode(std::span<const TokenId> ids, bool special) const;

    TokenKind kind(TokenId id) const;
    bool is_end_of_generation(TokenId id) const;
    std::span<const TokenId> end_of_generation() const;
    /// Ids that may never be sampled: unused ones.
    std::span<const TokenId> never_sampled() const;
    /// The id of an added token or vocabulary entry by its text ("<think>"); −1 when absent.
    TokenId find(std::string_view text) const;

  private:
    Tokenizer();
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// Strict UTF-8: no overlongs, surrogates or values past U+10FFFF.
bool is_valid_utf8(std::string_view text);

}  // namespace pantheon::model

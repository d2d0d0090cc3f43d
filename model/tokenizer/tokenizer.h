// Text to token ids and back: the byte-level BPE of Qwen vocabularies as GGUF files carry it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/gguf/gguf_file.h"
#include "model/tokenizer/utf8.h"
#include "model/tokenizer/vocabulary.h"
#include "runtime/base/ids.h"
#include "runtime/base/status.h"

namespace pantheon::model {

/// Immutable once loaded: every function may be called from any thread at any time.
class Tokenizer {
  public:
    /// From the tokenizer.ggml.* keys. invalid_argument names the key that is missing or wrong, and for an
    /// unknown tokenizer.ggml.pre or .model the accepted values. n_embd_rows: rows of the token embedding;
    /// sizes must agree.
    static Result<std::shared_ptr<const Tokenizer>> load(const GgufMetadata& metadata,
                                                         std::int64_t n_embd_rows);

    std::int32_t n_vocab() const;
    std::string_view pre() const;  // "qwen35", "qwen2"

    /// Ids of a text. Control tokens match only inside `trusted` ranges (sorted, disjoint); user-defined ones
    /// match everywhere. Between added tokens the text is one run, whoever wrote it. Invalid UTF-8 is read as
    /// lenient_utf8 says. No BOS, no EOS.
    std::vector<TokenId> encode(std::string_view text, std::span<const TextRange> trusted) const;
    /// Everything trusted (special = true) or nothing.
    std::vector<TokenId> encode(std::string_view text, bool special) const;

    /// The token's exact bytes. Control tokens give their text only when `special`; unused ones give nothing.
    std::string_view piece(TokenId id, bool special) const;
    /// Concatenated pieces. Ids out of range give nothing; check them first.
    std::string decode(std::span<const TokenId> ids, bool special) const;

    bool is_valid(TokenId id) const { return id >= 0 && id < n_vocab(); }
    /// `unused` for an id out of range.
    TokenKind kind(TokenId id) const;
    bool is_end_of_generation(TokenId id) const;
    std::span<const TokenId> end_of_generation() const;  // ascending
    /// Ids that may never be sampled: unused ones. Ascending.
    std::span<const TokenId> never_sampled() const;
    /// The id of an added token or vocabulary entry by its text ("<think>"); −1 when absent.
    TokenId find(std::string_view text) const;

  private:
    explicit Tokenizer(std::unique_ptr<const Vocabulary> vocabulary) : vocabulary_(std::move(vocabulary)) {}
    void encode_run(std::string_view text, BpeMerger& merger, std::vector<Symbol>& scratch,
                    std::vector<TokenId>& out) const;

    std::unique_ptr<const Vocabulary> vocabulary_;
};

}  // namespace pantheon::model

// A GGUF file's vocabulary: the checked tokenizer.ggml.* keys, and everything that follows from the entries'
// texts.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/gguf/gguf_file.h"
#include "model/tokenizer/added_tokens.h"
#include "model/tokenizer/bpe.h"
#include "model/tokenizer/pretokenizer.h"
#include "runtime/base/ids.h"
#include "runtime/base/status.h"

namespace pantheon::model {

/// The file's number for the type of an entry. `unknown` behaves as `control`.
enum class TokenKind { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

/// Finds vocabulary entries by their text as the file spells it.
class EntryIndex {
  public:
    /// `entries` outlives the index. Empty texts are not found. Returns the ids of two equal texts, if there
    /// are any.
    std::optional<std::pair<TokenId, TokenId>> build(const std::vector<std::string>& entries);
    TokenId find(std::string_view text) const;

  private:
    std::size_t slot_of(std::string_view text) const;

    const std::vector<std::string>* entries_ = nullptr;
    std::vector<TokenId> slots_;  // open addressing; −1 is free
};

struct Vocabulary {
    PreTokenizer pre = PreTokenizer::qwen35;
    std::vector<std::string> entries;  // as the file spells them
    std::vector<TokenKind> kinds;
    EntryIndex index;
    std::string bytes;                       // all entries' bytes, one after the other
    std::vector<std::uint32_t> bytes_begin;  // n_vocab + 1
    AddedTokenMatcher added;
    std::vector<TokenId> end_of_generation;  // ascending
    std::vector<TokenId> never_sampled;      // ascending

    /// BPE works on symbols: a token's id, or a number from n_vocab on for a text that only merges make.
    std::optional<MergeTable> merges;
    std::vector<Symbol> byte_symbols;        // 256; −1: no such entry
    std::vector<std::string> extra_symbols;  // bytes of symbol n_vocab + i

    std::int32_t n_vocab() const { return static_cast<std::int32_t>(entries.size()); }
};

/// As Tokenizer::load. The result does not move: its index points into it.
Result<std::unique_ptr<const Vocabulary>> load_vocabulary(const GgufMetadata& metadata,
                                                          std::int64_t n_embd_rows);

}  // namespace pantheon::model

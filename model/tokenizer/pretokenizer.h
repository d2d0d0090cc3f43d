// Splits text into the pieces inside which BPE may merge. Hand-written for the two patterns of Qwen
// vocabularies, one pass, no regular expressions:
//   (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?W+|\p{N}| ?[^\sW\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
// where W is [\p{L}\p{M}] for qwen35 and \p{L} for qwen2.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace pantheon::model {

enum class PreTokenizer { qwen2, qwen35 };

/// "qwen2", "qwen35", as tokenizer.ggml.pre spells them; empty for anything else.
std::optional<PreTokenizer> parse_pre_tokenizer(std::string_view name);
std::string_view pre_tokenizer_name(PreTokenizer pre);

/// End of the piece that begins at `begin` < text.size(); `text` as lenient_utf8 returns it. Always > begin.
std::size_t piece_end(PreTokenizer pre, std::string_view text, std::size_t begin);

}  // namespace pantheon::model

#include "model/tokenizer/tokenizer.h"

#include <algorithm>

namespace pantheon::model {

Result<std::shared_ptr<const Tokenizer>> Tokenizer::load(const GgufMetadata& metadata,
                                                         std::int64_t n_embd_rows) {
    auto vocabulary = load_vocabulary(metadata, n_embd_rows);
    if (!vocabulary) return std::move(vocabulary).error();
    return std::shared_ptr<const Tokenizer>(new Tokenizer(std::move(*vocabulary)));
}

std::int32_t Tokenizer::n_vocab() const {
    return vocabulary_->n_vocab();
}

std::string_view Tokenizer::pre() const {
    return pre_tokenizer_name(vocabulary_->pre);
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, std::span<const TextRange> trusted) const {
    std::vector<TokenId> ids;
    ids.reserve(text.size() / 3 + 8);
    BpeMerger merger(*vocabulary_->merges);
    std::vector<Symbol> scratch;
    std::size_t pos = 0;
    for (const AddedTokenMatcher::Match& match : vocabulary_->added.find(text, trusted)) {
        encode_run(text.substr(pos, match.begin - pos), merger, scratch, ids);
        ids.push_back(match.id);
        pos = match.end;
    }
    encode_run(text.substr(pos), merger, scratch, ids);
    return ids;
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, bool special) const {
    const TextRange all{0, text.size()};
    return encode(text, special ? std::span(&all, 1) : std::span<const TextRange>());
}

void Tokenizer::encode_run(std::string_view text, BpeMerger& merger, std::vector<Symbol>& scratch,
                           std::vector<TokenId>& out) const {
    const Vocabulary& v = *vocabulary_;
    std::string repaired;
    if (!is_valid_utf8(text)) {
        repaired = lenient_utf8(text);
        text = repaired;
    }
    const auto push_bytes = [&](std::string_view bytes) {
        for (const char c : bytes) {
            const Symbol symbol = v.byte_symbols[static_cast<unsigned char>(c)];
            if (symbol >= 0) out.push_back(symbol);
        }
    };
    std::size_t begin = 0;
    while (begin < text.size()) {
        const std::size_t end = piece_end(v.pre, text, begin);
        scratch.clear();
        for (std::size_t i = begin; i < end; ++i) {
            const Symbol symbol = v.byte_symbols[static_cast<unsigned char>(text[i])];
            if (symbol >= 0) scratch.push_back(symbol);
        }
        const std::size_t n_symbols = merger.merge(scratch);
        for (std::size_t i = 0; i < n_symbols; ++i) {
            if (scratch[i] < v.n_vocab())
                out.push_back(scratch[i]);
            else
                push_bytes(v.extra_symbols[static_cast<std::size_t>(scratch[i] - v.n_vocab())]);
        }
        begin = end;
    }
}

std::string_view Tokenizer::piece(TokenId id, bool special) const {
    if (!is_valid(id)) return {};
    const auto i = static_cast<std::size_t>(id);
    const TokenKind kind = vocabulary_->kinds[i];
    if (!special && (kind == TokenKind::control || kind == TokenKind::unknown)) return {};
    const std::uint32_t begin = vocabulary_->bytes_begin[i];
    return std::string_view(vocabulary_->bytes).substr(begin, vocabulary_->bytes_begin[i + 1] - begin);
}

std::string Tokenizer::decode(std::span<const TokenId> ids, bool special) const {
    std::string out;
    for (const TokenId id : ids) out += piece(id, special);
    return out;
}

TokenKind Tokenizer::kind(TokenId id) const {
    return is_valid(id) ? vocabulary_->kinds[static_cast<std::size_t>(id)] : TokenKind::unused;
}

bool Tokenizer::is_end_of_generation(TokenId id) const {
    const auto& ids = vocabulary_->end_of_generation;
    return std::binary_search(ids.begin(), ids.end(), id);
}

std::span<const TokenId> Tokenizer::end_of_generation() const {
    return vocabulary_->end_of_generation;
}

std::span<const TokenId> Tokenizer::never_sampled() const {
    return vocabulary_->never_sampled;
}

TokenId Tokenizer::find(std::string_view text) const {
    return vocabulary_->index.find(text);
}

}  // namespace pantheon::model

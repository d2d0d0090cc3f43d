#include "model/tokenizer/vocabulary.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <unordered_map>
#include <utility>

#include "model/tokenizer/byte_alphabet.h"
#include "runtime/base/log.h"

namespace pantheon::model {
namespace {

constexpr std::string_view kModelKey = "tokenizer.ggml.model";
constexpr std::string_view kPreKey = "tokenizer.ggml.pre";
constexpr std::string_view kTokensKey = "tokenizer.ggml.tokens";
constexpr std::string_view kTypesKey = "tokenizer.ggml.token_type";
constexpr std::string_view kMergesKey = "tokenizer.ggml.merges";
constexpr std::string_view kComponent = "tokenizer";

/// The vocabulary of Qwen3.5, whose converters sometimes still write the older pre-tokeniser's name.
constexpr std::size_t kQwen35Entries = 248'320;

/// Entries that are control tokens whatever type the file gives them.
constexpr std::string_view kControlTexts[] = {
    "<|endoftext|>", "<|im_end|>",    "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>",
    "<|fim_pad|>",   "<|repo_name|>", "<|file_sep|>",   "</s>",
};
/// Entries that end generation, beside those the *_token_id keys name.
constexpr std::string_view kEndTexts[] = {
    "<|endoftext|>", "<|im_end|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "</s>",
};
constexpr std::string_view kEndKeys[] = {
    "tokenizer.ggml.eos_token_id",
    "tokenizer.ggml.eot_token_id",
    "tokenizer.ggml.eom_token_id",
};
/// Read by nothing here, but an id past the vocabulary says that the file is damaged.
constexpr std::string_view kOtherIdKeys[] = {
    "tokenizer.ggml.bos_token_id",     "tokenizer.ggml.unknown_token_id", "tokenizer.ggml.seperator_token_id",
    "tokenizer.ggml.padding_token_id", "tokenizer.ggml.mask_token_id",    "tokenizer.ggml.fim_pre_token_id",
    "tokenizer.ggml.fim_suf_token_id", "tokenizer.ggml.fim_mid_token_id", "tokenizer.ggml.fim_pad_token_id",
    "tokenizer.ggml.fim_rep_token_id", "tokenizer.ggml.fim_sep_token_id",
};

Error wrong(std::string_view key, std::string message) {
    return Error(Code::invalid_argument, std::string(key) + ": " + std::move(message));
}

Result<std::string_view> required_string(const GgufMetadata& metadata, std::string_view key,
                                         std::string_view accepted) {
    auto value = metadata.get_string(key);
    if (!value) return std::move(value).error();
    if (!*value) return wrong(key, "missing, accepted: " + std::string(accepted));
    return **value;
}

Result<const std::vector<std::string>*> required_strings(const GgufMetadata& metadata, std::string_view key) {
    auto value = metadata.get_string_array(key);
    if (!value) return std::move(value).error();
    if (*value == nullptr) return wrong(key, "missing");
    return *value;
}

Status read_pre(const GgufMetadata& metadata, Vocabulary& v) {
    auto model = required_string(metadata, kModelKey, "gpt2");
    if (!model) return std::move(model).error();
    if (*model != "gpt2")
        return wrong(kModelKey, "\"" + std::string(*model) + "\" is unknown, accepted: gpt2");
    auto name = required_string(metadata, kPreKey, "qwen2, qwen35");
    if (!name) return std::move(name).error();
    const auto pre = parse_pre_tokenizer(*name);
    if (!pre) return wrong(kPreKey, "\"" + std::string(*name) + "\" is unknown, accepted: qwen2, qwen35");
    v.pre = *pre;
    return {};
}

Status read_entries(const GgufMetadata& metadata, std::int64_t n_embd_rows, Vocabulary& v) {
    auto entries = required_strings(metadata, kTokensKey);
    if (!entries) return std::move(entries).error();
    const std::size_t n = (*entries)->size();
    if (n == 0) return wrong(kTokensKey, "empty");
    if (n_embd_rows < 0 || static_cast<std::uint64_t>(n_embd_rows) != n)
        return wrong(kTokensKey, std::to_string(n) + " entries, but the token embedding has " +
                                     std::to_string(n_embd_rows) + " rows");
    v.entries = **entries;
    if (const auto equal = v.index.build(v.entries))
        return wrong(kTokensKey, "entries " + std::to_string(equal->first) + " and " +
                                     std::to_string(equal->second) + " are the same text");
    if (n == kQwen35Entries && v.pre == PreTokenizer::qwen2)
        log_warning(kComponent,
                    "tokenizer.ggml.pre is qwen2, but a vocabulary of 248320 entries was made for qwen35: "
                    "text with combining marks may be split differently from training");
    return {};
}

Status read_kinds(const GgufMetadata& metadata, Vocabulary& v) {
    auto types = metadata.get_int_array(kTypesKey);
    if (!types) return std::move(types).error();
    if (!*types) return wrong(kTypesKey, "missing");
    const std::vector<std::int64_t>& numbers = **types;
    if (numbers.size() != v.entries.size())
        return wrong(kTypesKey,
                     std::to_string(numbers.size()) + " entries, want " + std::to_string(v.entries.size()));
    v.kinds.reserve(numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        if (numbers[i] < 1 || numbers[i] > 6)
            return wrong(kTypesKey,
                         "entry " + std::to_string(i) + " is " + std::to_string(numbers[i]) + ", want 1 … 6");
        v.kinds.push_back(static_cast<TokenKind>(numbers[i]));
    }
    for (const std::string_view text : kControlTexts) {
        const TokenId id = v.index.find(text);
        if (id >= 0) v.kinds[static_cast<std::size_t>(id)] = TokenKind::control;
    }
    return {};
}

Status read_special_ids(const GgufMetadata& metadata, Vocabulary& v) {
    const std::int64_t last = v.n_vocab() - 1;
    for (const std::string_view text : kEndTexts) {
        const TokenId id = v.index.find(text);
        if (id >= 0) v.end_of_generation.push_back(id);
    }
    for (const std::string_view key : kEndKeys) {
        auto id = metadata.get_int(key, 0, last);
        if (!id) return std::move(id).error();
        if (*id) v.end_of_generation.push_back(static_cast<TokenId>(**id));
    }
    for (const std::string_view key : kOtherIdKeys) {
        auto id = metadata.get_int(key, 0, last);
        if (!id) return std::move(id).error();
    }
    std::sort(v.end_of_generation.begin(), v.end_of_generation.end());
    const auto repeats = std::unique(v.end_of_generation.begin(), v.end_of_generation.end());
    v.end_of_generation.erase(repeats, v.end_of_generation.end());
    if (v.end_of_generation.empty())
        log_warning(kComponent,
                    "the vocabulary has no end-of-generation token: replies end at max_tokens only");
    return {};
}

/// What each entry decodes to, the list of added tokens, and the ids that may not be sampled.
Status derive_entries(Vocabulary& v) {
    std::vector<AddedTokenMatcher::Entry> added;
    v.bytes_begin.reserve(v.entries.size() + 1);
    for (std::size_t i = 0; i < v.entries.size(); ++i) {
        const auto id = static_cast<TokenId>(i);
        const TokenKind kind = v.kinds[i];
        v.bytes_begin.push_back(static_cast<std::uint32_t>(v.bytes.size()));
        switch (kind) {
            case TokenKind::normal:
            case TokenKind::byte:
                v.bytes += bytes_of_entry(v.entries[i]);
                break;
            case TokenKind::unknown:
            case TokenKind::control:
            case TokenKind::user_defined:
                v.bytes += v.entries[i];
                added.push_back({v.entries[i], id, kind != TokenKind::user_defined});
                break;
            case TokenKind::unused:
                v.never_sampled.push_back(id);
                break;
        }
        if (v.bytes.size() > std::numeric_limits<std::uint32_t>::max())
            return wrong(kTokensKey, "more than 4 GiB of text");
    }
    v.bytes_begin.push_back(static_cast<std::uint32_t>(v.bytes.size()));
    v.added = AddedTokenMatcher(std::move(added));
    return {};
}

/// Numbers the texts that merges make but the vocabulary lacks. The reference lets such merges fire and then
/// emits the text byte by byte, so they must exist here too.
class SymbolNumbers {
  public:
    explicit SymbolNumbers(Vocabulary& v) : v_(v) {}

    Symbol find(std::string_view text) const {
        const TokenId id = v_.index.find(text);
        if (id >= 0) return id;
        const auto it = extra_.find(std::string(text));
        return it == extra_.end() ? -1 : it->second;
    }
    Symbol find_or_add(std::string_view text) {
        const Symbol found = find(text);
        if (found >= 0) return found;
        const auto symbol = static_cast<Symbol>(v_.entries.size() + v_.extra_symbols.size());
        extra_.emplace(text, symbol);
        v_.extra_symbols.push_back(bytes_of_entry(text));
        return symbol;
    }

  private:
    Vocabulary& v_;
    std::unordered_map<std::string, Symbol> extra_;
};

Status read_merges(const GgufMetadata& metadata, Vocabulary& v) {
    auto merges = required_strings(metadata, kMergesKey);
    if (!merges) return std::move(merges).error();
    const std::vector<std::string>& lines = **merges;
    if (v.entries.size() + lines.size() > static_cast<std::size_t>(std::numeric_limits<Symbol>::max()))
        return wrong(kMergesKey, "too many entries");

    SymbolNumbers numbers(v);
    std::vector<Symbol> results(lines.size(), -1);
    const auto space_of = [](const std::string& line) { return line.find(' ', 1); };
    std::string joined;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const std::size_t space = space_of(lines[i]);
        if (space == std::string::npos || space + 1 == lines[i].size()) continue;
        joined.assign(lines[i], 0, space).append(lines[i], space + 1);
        results[i] = numbers.find_or_add(joined);
    }
    v.merges.emplace(lines.size());
    std::size_t n_skipped = 0;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const std::size_t space = space_of(lines[i]);
        const std::string_view line = lines[i];
        const Symbol left = results[i] < 0 ? -1 : numbers.find(line.substr(0, space));
        const Symbol right = left < 0 ? -1 : numbers.find(line.substr(space + 1));
        if (right < 0) {
            ++n_skipped;
            continue;
        }
        v.merges->add(left, right, {static_cast<std::uint32_t>(i), results[i]});
    }
    if (n_skipped != 0)
        log_info(kComponent, std::to_string(n_skipped) + " of " + std::to_string(lines.size()) +
                                 " merges join texts that the vocabulary lacks and were skipped");
    return {};
}

void derive_byte_symbols(Vocabulary& v) {
    std::size_t n_missing = 0;
    for (const std::string& character : byte_alphabet()) {
        const TokenId id = v.index.find(character);
        v.byte_symbols.push_back(id);
        if (id < 0) ++n_missing;
    }
    if (n_missing != 0)
        log_warning(kComponent, "the vocabulary lacks " + std::to_string(n_missing) +
                                    " of the 256 byte tokens: text that needs them loses them");
}

}  // namespace

std::size_t EntryIndex::slot_of(std::string_view text) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t i = std::hash<std::string_view>{}(text)&mask;
    while (slots_[i] >= 0 && (*entries_)[static_cast<std::size_t>(slots_[i])] != text) i = (i + 1) & mask;
    return i;
}

std::optional<std::pair<TokenId, TokenId>> EntryIndex::build(const std::vector<std::string>& entries) {
    entries_ = &entries;
    slots_.assign(std::bit_ceil(2 * entries.size() + 1), -1);
    for (std::size_t i = 0; i < entries.size(); ++i) {
        if (entries[i].empty()) continue;
        TokenId& slot = slots_[slot_of(entries[i])];
        if (slot >= 0) return std::pair{slot, static_cast<TokenId>(i)};
        slot = static_cast<TokenId>(i);
    }
    return std::nullopt;
}

TokenId EntryIndex::find(std::string_view text) const {
    return text.empty() ? -1 : slots_[slot_of(text)];
}

Result<std::unique_ptr<const Vocabulary>> load_vocabulary(const GgufMetadata& metadata,
                                                          std::int64_t n_embd_rows) {
    auto v = std::make_unique<Vocabulary>();
    if (Status s = read_pre(metadata, *v); !s) return std::move(s).error();
    if (Status s = read_entries(metadata, n_embd_rows, *v); !s) return std::move(s).error();
    if (Status s = read_kinds(metadata, *v); !s) return std::move(s).error();
    if (Status s = read_special_ids(metadata, *v); !s) return std::move(s).error();
    if (Status s = derive_entries(*v); !s) return std::move(s).error();
    if (Status s = read_merges(metadata, *v); !s) return std::move(s).error();
    derive_byte_symbols(*v);
    return std::unique_ptr<const Vocabulary>(std::move(v));
}

}  // namespace pantheon::model

#include "model/tokenizer/pretokenizer.h"

#include "model/tokenizer/unicode.h"
#include "model/tokenizer/utf8.h"

namespace pantheon::model {
namespace {

struct Char {
    std::uint32_t code_point = 0;
    CharClass char_class = CharClass::other;
    std::size_t end = 0;  // position after it
};

/// The pattern's alternatives as functions over one text.
class Splitter {
  public:
    Splitter(PreTokenizer pre, std::string_view text)
        : marks_join_words_(pre == PreTokenizer::qwen35), text_(text), classes_(char_class_table()) {}

    std::size_t piece_end(std::size_t begin) const {
        const Char first = read(begin);
        if (first.code_point == '\'') {
            const std::size_t end = contraction_end(first.end);
            if (end != 0) return end;
        }
        if (is_word(first)) return word_end(first.end);
        if (first.char_class == CharClass::number) return first.end;
        const bool has_next = first.end < text_.size();
        const Char second = has_next ? read(first.end) : Char{};
        const bool is_line_end = first.code_point == '\r' || first.code_point == '\n';
        if (!is_line_end && has_next && is_word(second)) return word_end(second.end);
        if (is_punctuation(first)) return punctuation_end(first.end);
        if (first.code_point == ' ' && has_next && is_punctuation(second)) return punctuation_end(second.end);
        return white_space_end(begin);
    }

  private:
    Char read(std::size_t pos) const {
        Char c;
        c.end = pos;
        c.code_point = next_code_point(text_, c.end);
        c.char_class = classes_[c.code_point];
        return c;
    }

    bool is_word(const Char& c) const {
        return c.char_class == CharClass::letter || (marks_join_words_ && c.char_class == CharClass::mark);
    }
    /// [^\sW\p{N}]: without marks in W they count as punctuation.
    bool is_punctuation(const Char& c) const {
        return c.char_class == CharClass::other || (!marks_join_words_ && c.char_class == CharClass::mark);
    }

    std::size_t word_end(std::size_t pos) const {
        while (pos < text_.size()) {
            const Char c = read(pos);
            if (!is_word(c)) break;
            pos = c.end;
        }
        return pos;
    }

    std::size_t punctuation_end(std::size_t pos) const {
        while (pos < text_.size()) {
            const Char c = read(pos);
            if (!is_punctuation(c)) break;
            pos = c.end;
        }
        while (pos < text_.size() && (text_[pos] == '\r' || text_[pos] == '\n')) ++pos;
        return pos;
    }

    /// \s*[\r\n]+ cuts after the last line end of the run; otherwise a run of several characters leaves its
    /// last one to the text that follows.
    std::size_t white_space_end(std::size_t begin) const {
        std::size_t pos = begin;
        std::size_t last_start = begin;
        std::size_t after_line_end = 0;
        while (pos < text_.size()) {
            const Char c = read(pos);
            if (c.char_class != CharClass::white_space) break;
            last_start = pos;
            pos = c.end;
            if (c.code_point == '\r' || c.code_point == '\n') after_line_end = pos;
        }
        if (after_line_end != 0) return after_line_end;
        return pos < text_.size() && last_start > begin ? last_start : pos;
    }

    /// `pos` is after the apostrophe; 0 when no contraction follows. ASCII letters of either case only.
    std::size_t contraction_end(std::size_t pos) const {
        const auto lower = [&](std::size_t i) {
            const char c = i < text_.size() ? text_[i] : '\0';
            return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        };
        const char a = lower(pos);
        if (a == 's' || a == 't' || a == 'm' || a == 'd') return pos + 1;
        const char b = lower(pos + 1);
        if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l')) return pos + 2;
        return 0;
    }

    bool marks_join_words_;
    std::string_view text_;
    const CharClass* classes_;
};

}  // namespace

std::optional<PreTokenizer> parse_pre_tokenizer(std::string_view name) {
    if (name == "qwen2") return PreTokenizer::qwen2;
    if (name == "qwen35") return PreTokenizer::qwen35;
    return std::nullopt;
}

std::string_view pre_tokenizer_name(PreTokenizer pre) {
    return pre == PreTokenizer::qwen2 ? "qwen2" : "qwen35";
}

std::size_t piece_end(PreTokenizer pre, std::string_view text, std::size_t begin) {
    return Splitter(pre, text).piece_end(begin);
}

}  // namespace pantheon::model

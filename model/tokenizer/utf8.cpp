#include "model/tokenizer/utf8.h"

namespace pantheon::model {
namespace {

unsigned char at(std::string_view text, std::size_t i) {
    return static_cast<unsigned char>(text[i]);
}

bool is_continuation(unsigned char byte) {
    return (byte & 0xC0) == 0x80;
}

/// Length that a lead byte announces to the lenient reader; 0 for none.
std::size_t lenient_length(unsigned char lead) {
    if (lead < 0x80) return 1;
    if (lead < 0xC0) return 0;
    if (lead < 0xE0) return 2;
    if (lead < 0xF0) return 3;
    return lead < 0xF8 ? 4 : 0;
}

}  // namespace

Utf8Step utf8_step(std::string_view text, std::size_t& n_bytes) {
    n_bytes = 1;
    const unsigned char lead = at(text, 0);
    if (lead < 0x80) return Utf8Step::character;
    if (lead < 0xC2 || lead > 0xF4) return Utf8Step::invalid_byte;
    const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    // The second byte's range excludes overlong forms, surrogates and values past U+10FFFF.
    const unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    const unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    for (std::size_t i = 1; i < length; ++i) {
        if (i == text.size()) return Utf8Step::unfinished;
        const unsigned char byte = at(text, i);
        const bool is_good = i == 1 ? byte >= low && byte <= high : is_continuation(byte);
        if (!is_good) return Utf8Step::invalid_byte;
    }
    n_bytes = length;
    return Utf8Step::character;
}

std::string to_valid_utf8(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const std::size_t n_valid = valid_utf8_prefix(text);
        out.append(text.substr(0, n_valid));
        text.remove_prefix(n_valid);
        if (text.empty()) break;
        out.append(kReplacementCharacter);
        text.remove_prefix(1);
    }
    return out;
}

void append_utf8(std::string& out, std::uint32_t code_point) {
    const auto push = [&](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
    if (code_point < 0x80) {
        push(code_point);
    } else if (code_point < 0x800) {
        push(0xC0 | code_point >> 6);
        push(0x80 | (code_point & 0x3F));
    } else if (code_point < 0x10000) {
        push(0xE0 | code_point >> 12);
        push(0x80 | (code_point >> 6 & 0x3F));
        push(0x80 | (code_point & 0x3F));
    } else {
        push(0xF0 | code_point >> 18);
        push(0x80 | (code_point >> 12 & 0x3F));
        push(0x80 | (code_point >> 6 & 0x3F));
        push(0x80 | (code_point & 0x3F));
    }
}

std::string lenient_utf8(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    std::size_t pos = 0;
    while (pos < text.size()) {
        const std::size_t n_valid = valid_utf8_prefix(text.substr(pos));
        out.append(text.substr(pos, n_valid));
        pos += n_valid;
        if (pos == text.size()) break;
        const std::size_t length = lenient_length(at(text, pos));
        bool is_whole = length != 0 && pos + length <= text.size();
        for (std::size_t i = 1; is_whole && i < length; ++i) is_whole = is_continuation(at(text, pos + i));
        std::size_t end = pos;
        const std::uint32_t code_point = is_whole ? next_code_point(text, end) : 0;
        if (is_whole && code_point < 0x110000) {
            append_utf8(out, code_point);
            pos = end;
        } else {
            out.append(kReplacementCharacter);
            pos += 1;
        }
    }
    return out;
}

}  // namespace pantheon::model

// UTF-8 in the three strictnesses that a tokenizer needs: strict checking of what clients send, the lenient
// reading that the reference implementation applies before BPE, and lossy repair of what goes out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/utf8.h"

namespace pantheon::model {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

using pantheon::valid_utf8_prefix;
/// Strict UTF-8: no overlongs, surrogates or values past U+10FFFF.
inline bool is_valid_utf8(std::string_view text) {
    return is_strict_utf8(text);
}

enum class Utf8Step { character, invalid_byte, unfinished };
/// What stands at the start of a non-empty `text`: a strict character of `n_bytes`, a byte that cannot begin
/// one whatever follows (n_bytes = 1), or the beginning of one that the text ends inside of.
Utf8Step utf8_step(std::string_view text, std::size_t& n_bytes);

/// Each byte that is no part of a strict character becomes one U+FFFD.
std::string to_valid_utf8(std::string_view text);

/// Rewrites a text as the reference tokenizer reads it: a bad lead byte or one whose continuation bytes are
/// missing gives one U+FFFD and one byte is skipped; overlong forms are shortened, surrogates stay. A
/// four-byte value above U+10FFFF gives one U+FFFD a byte. Strictly valid text comes back unchanged.
std::string lenient_utf8(std::string_view text);

/// Appends the UTF-8 form of a code point below 0x110000, surrogates included.
void append_utf8(std::string& out, std::uint32_t code_point);

/// Decodes the character at `pos` of a text that lenient_utf8 returned, and moves `pos` past it.
inline std::uint32_t next_code_point(std::string_view text, std::size_t& pos) {
    const auto byte = [&](std::size_t i) {
        return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i]));
    };
    const std::uint32_t lead = byte(pos);
    if (lead < 0x80) {
        pos += 1;
        return lead;
    }
    if (lead < 0xE0) {
        pos += 2;
        return (lead & 0x1F) << 6 | (byte(pos - 1) & 0x3F);
    }
    if (lead < 0xF0) {
        pos += 3;
        return (lead & 0x0F) << 12 | (byte(pos - 2) & 0x3F) << 6 | (byte(pos - 1) & 0x3F);
    }
    pos += 4;
    return (lead & 0x07) << 18 | (byte(pos - 3) & 0x3F) << 12 | (byte(pos - 2) & 0x3F) << 6 |
           (byte(pos - 1) & 0x3F);
}

}  // namespace pantheon::model

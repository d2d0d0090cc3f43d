// The character classes of Unicode that the pre-tokeniser and the chat template tell apart.
#pragma once

#include <cstdint>

namespace pantheon::model {

/// L*, M*, N*, the property White_Space; `other` is everything else: punctuation, symbols, controls,
/// unassigned.
enum class CharClass : std::uint8_t { other, letter, mark, number, white_space };

/// Class of a code point; `other` past U+10FFFF. Unicode 15.0 (unicode_ranges.inc).
CharClass char_class(std::uint32_t code_point);

/// The table behind char_class: one entry for each code point below 0x110000. For loops that cannot afford a
/// call.
const CharClass* char_class_table();

}  // namespace pantheon::model

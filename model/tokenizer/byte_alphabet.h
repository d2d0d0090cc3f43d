// The printable alphabet in which byte-level vocabularies spell their tokens: every byte has one character.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace pantheon::model {

/// The UTF-8 character of each byte: 0x21–0x7E, 0xA1–0xAC and 0xAE–0xFF stand for themselves, the other 68,
/// in order, are U+0100, U+0101, …
const std::array<std::string, 256>& byte_alphabet();

/// A vocabulary entry's bytes. Characters outside the alphabet, which no byte-level entry should have, keep
/// their own UTF-8 bytes.
std::string bytes_of_entry(std::string_view entry);

}  // namespace pantheon::model

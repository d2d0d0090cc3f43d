// Strict UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <string_view>

namespace pantheon {

/// The length in bytes of the longest valid prefix that ends between characters; text.size() when all is
/// valid.
std::size_t valid_utf8_prefix(std::string_view text) noexcept;

inline bool is_strict_utf8(std::string_view text) noexcept {
    return valid_utf8_prefix(text) == text.size();
}

/// The longest prefix of valid UTF-8 `text` of at most max_bytes that does not cut a character.
std::string_view clip_utf8(std::string_view text, std::size_t max_bytes) noexcept;

}  // namespace pantheon

// Bytes from the command line as the UTF-8 that the protocol wants.
#pragma once

#include <string>
#include <string_view>

namespace pantheon::cli {

/// Valid UTF-8 comes back unchanged. Else, left to right: a lead byte with all its continuation bytes is one
/// code point (an overlong one is re-encoded), any other byte becomes one U+FFFD; so does each byte of a
/// surrogate and of a value above U+10FFFF, which no UTF-8 text can carry.
std::string repair_utf8(std::string_view bytes);

}  // namespace pantheon::cli

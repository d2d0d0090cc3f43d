// Numbers as people write them: plain decimals, the whole text.
#pragma once

#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/base/status.h"

namespace pantheon::cli {

/// Nothing when the text is not one decimal of that type, or is not finite.
template <class T>
std::optional<T> parse_number(std::string_view text) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    if constexpr (std::is_floating_point_v<T>)
        if (!std::isfinite(value)) return std::nullopt;
    return value;
}

/// Decimals separated by white space. invalid_argument names the first word that is no token id.
Result<std::vector<TokenId>> parse_token_ids(std::string_view text);

}  // namespace pantheon::cli

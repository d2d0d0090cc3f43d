// Parsing JSON that a client or the model wrote: bounded in depth and in keys, so that what comes out is
// cheap to walk and safe to recurse into.
#pragma once

#include <optional>
#include <string_view>

#include "runtime/base/json.h"

namespace pantheon::model {

/// An object of Json searches its keys one by one; more of them would make parsing quadratic.
inline constexpr std::size_t kMaxJsonKeys = 256;

/// Nothing when `text` is not one JSON value, is nested more than kMaxJsonDepth deep, or has an object of
/// more than kMaxJsonKeys keys. Of equal keys the last value counts.
std::optional<Json> parse_bounded_json(std::string_view text);

}  // namespace pantheon::model

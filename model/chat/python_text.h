// How the published templates' engine, Python's Jinja, prints values and trims text: str(), json.dumps,
// str.strip.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "runtime/base/json.h"
#include "runtime/base/status.h"

namespace pantheon::model {

inline constexpr int kMaxJsonDepth = 32;

/// Bytes of the white-space character (as str.isspace has it) that `text` begins with; 0 for none.
std::size_t leading_space(std::string_view text);
/// str.strip() of valid UTF-8.
std::string_view trim(std::string_view text);

/// repr() of a float: the shortest digits that read back, "1.0", "1e-05", "1e+16", "nan", "-inf".
std::string python_float(double x);

/// json.dumps(value, ensure_ascii=False): ", " and ": ", keys in their order, "NaN" and "Infinity".
/// Strings that are not strict UTF-8, binary values, and more than kMaxJsonDepth levels are refused:
/// invalid_argument saying where, relative to the value.
Result<std::string> python_json(const Json& value);

/// str(value) of what is neither a mapping nor a list: strings raw, True, False, None. Refuses what
/// python_json does.
Result<std::string> python_str(const Json& value);

}  // namespace pantheon::model

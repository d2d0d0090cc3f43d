// A daemon's status, for people.
#pragma once

#include <string>

#include "runtime/base/json.h"

namespace pantheon::cli {

/// One aligned line a fact. Fields that the daemon did not send are left out: it may be older or newer.
std::string status_text(const Json& status);
/// The answer to `sessions`: a line each.
std::string sessions_text(const Json& result);

}  // namespace pantheon::cli

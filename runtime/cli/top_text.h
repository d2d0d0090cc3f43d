// One screen of `pantheon top`.
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "runtime/base/json.h"

namespace pantheon::cli {

/// What the daemon said at one moment; a field that it did not send counts as 0.
struct TopSample {
    std::chrono::steady_clock::time_point at;
    Json status;
};

/// A header, one line an engine with a bar of its slots, and one a request of the caller, cut to `width`
/// columns and `height` lines. `before`, an earlier sample of the same daemon, gives the rates; without one,
/// or after a restart between the two, they are left out.
std::string top_text(const TopSample& now, const std::optional<TopSample>& before, int width, int height);

}  // namespace pantheon::cli

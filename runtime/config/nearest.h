// The known name that was probably meant.
#pragma once

#include <span>
#include <string_view>

namespace pantheon::config {

/// Edits from one name to the other: insert, delete, replace, swap of neighbours; '-' and '_' are the same,
/// and so are the two cases of a letter.
int edit_distance(std::string_view a, std::string_view b);

/// The first known name that begins with this one (of two letters or more), else the one with the fewest
/// edits, the first on ties; empty when none is known.
std::string_view nearest_name(std::string_view name, std::span<const std::string_view> known);

}  // namespace pantheon::config

// What people read about the keys, from the schema: the manual page, and the check that the annotated example
// file tells the truth.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pantheon::config {

/// pantheond.toml(5), in mdoc.
std::string manual_page();

/// The annotated file shows each key once, under its table, as "#key = default"; prose lines begin "# ".
/// Returns what is missing, surplus or has another default than the schema's.
std::vector<std::string> check_annotated_file(std::string_view text);

}  // namespace pantheon::config

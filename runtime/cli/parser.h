// The command line of `pantheon`.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "runtime/cli/options.h"

namespace pantheon::cli {

/// Nothing to run: help or version was asked for, or the words make no sense (exit_code 2, text for stderr).
struct ParseStop {
    int exit_code = 0;
    std::string text;
};

/// `arguments` without the program's name.
std::variant<CommandLine, ParseStop> parse_command_line(std::vector<std::string> arguments);

}  // namespace pantheon::cli

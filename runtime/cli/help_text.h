// The prose of `--help`: what a manual page says beyond the list of options, which comes from the parser.
#pragma once

#include <span>
#include <string_view>

namespace pantheon::cli {

struct CommandHelp {
    std::string_view name;      // "" is the program itself
    std::string_view summary;   // one line
    std::string_view synopsis;  // lines
    std::string_view description;
    std::string_view examples;
};

std::span<const CommandHelp> command_help();
const CommandHelp& help_of(std::string_view name);

extern const std::string_view kExitStatusHelp;

}  // namespace pantheon::cli

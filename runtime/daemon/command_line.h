// pantheond's command line.
#pragma once

#include <optional>
#include <string>

namespace pantheon::daemon {

struct CommandLine {
    std::string config_file;  // empty: kDefaultConfigFile if it exists, else defaults only
    bool check_config = false;
    bool plan = false;
    bool foreground = false;
};

inline constexpr const char* kDefaultConfigFile = "/etc/pantheon/pantheond.toml";

/// Either a command line or an exit code with what has been printed already (help, version, usage errors).
struct Parsed {
    std::optional<CommandLine> command;
    int exit_code = 0;
};
Parsed parse_command_line(int argc, char** argv);

}  // namespace pantheon::daemon

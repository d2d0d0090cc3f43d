#include "runtime/daemon/command_line.h"

#include <CLI/CLI.hpp>

namespace pantheon::daemon {

Parsed parse_command_line(int argc, char** argv) {
    CommandLine command;
    CLI::App app{
        "pantheond serves a Qwen3.5-MoE model to local programs over a ZeroMQ socket.\n"
        "It runs in the foreground and logs to stderr; systemd or a shell keeps it.",
        "pantheond"};
    app.set_version_flag("--version", std::string("pantheond ") + PANTHEON_VERSION);
    app.add_option("--config", command.config_file,
                   std::string("Configuration file (default: ") + kDefaultConfigFile + " if it exists)")
        ->type_name("FILE");
    app.add_flag("--check-config", command.check_config,
                 "Check the configuration file, print every problem with its line and column, and exit");
    app.add_flag("--plan", command.plan, "Print what would run where and what memory it takes, and exit");
    app.add_flag("--foreground", command.foreground,
                 "Log for people: times and colours instead of syslog levels");
    app.footer(
        "Exit status: 0 clean stop, 1 failure while running, 2 usage, 78 bad configuration or model.\n"
        "Signals: SIGTERM and SIGINT finish running requests for daemon.drain_s seconds, then exit; a second "
        "one\n"
        "exits at once.\n"
        "See also: pantheond.toml(5), pantheon(1).");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        const bool is_help = app.exit(error) == 0;
        return {std::nullopt, is_help ? 0 : 2};
    }
    return {command, 0};
}

}  // namespace pantheon::daemon

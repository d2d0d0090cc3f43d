// `pantheon`, the command-line client.
#include <exception>

#include "runtime/base/log.h"
#include "runtime/base/standard_streams.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/console.h"
#include "runtime/cli/parser.h"

int main(int argc, char** argv) {
    using namespace pantheon::cli;
    pantheon::reserve_standard_streams();
    handle_interrupts(OnInterrupt::exit_at_once);
    pantheon::set_log_level(pantheon::LogLevel::warning);
    try {
        const auto parsed = parse_command_line({argv + 1, argv + argc});
        if (const auto* stop = std::get_if<ParseStop>(&parsed)) {
            if (stop->exit_code == kDone) return write_out(stop->text) ? kDone : kRefused;
            write_err(stop->text);
            return stop->exit_code;
        }
        return run_command(std::get<CommandLine>(parsed));
    } catch (const std::exception& error) {
        complain(std::string("internal: ") + error.what());
        return kRefused;
    }
}

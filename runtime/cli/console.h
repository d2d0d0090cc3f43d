// Standard streams, files and Ctrl-C, as the commands use them.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace pantheon::cli {

enum ExitCode : int {
    kDone = 0,
    kRefused = 1,      // the daemon or the model said no
    kUsage = 2,        // the command line or an input file makes no sense
    kUnreachable = 3,  // no daemon
    kInterrupted = 130,
};

/// Writes all bytes to standard output and flushes. False when they cannot be written.
bool write_out(std::string_view text);
/// Writes to standard error; what cannot be written is lost.
void write_err(std::string_view text);
/// One line on standard error, "pantheon: …".
void complain(std::string_view message);
bool is_out_terminal();
bool is_err_terminal();

/// The whole of standard input.
Result<std::string> read_stdin();
/// A file, or standard input for "-".
Result<std::string> read_input(const std::string& path);

/// What the first Ctrl-C does; a second one exits at once with 130, unless all it does is to raise the flag.
enum class OnInterrupt { exit_at_once, raise_flag, only_raise_flag };
void handle_interrupts(OnInterrupt what);
/// Set by Ctrl-C unless that exits.
const std::atomic<bool>& interrupted();
void clear_interrupt();

}  // namespace pantheon::cli

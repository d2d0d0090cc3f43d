// One log for the whole process, on stderr: for humans on a terminal, with syslog levels under systemd.
// Prompts, generated text and keys are never passed to it.
#pragma once

#include <string_view>

namespace pantheon {

enum class LogLevel { debug, info, warning, error, off };

/// "debug", "info", "warning", "error", "off"; false and unchanged for anything else.
bool parse_log_level(std::string_view name, LogLevel& level);

/// Lines below `level` are dropped. May be called at any time from any thread.
void set_log_level(LogLevel level);

/// people: times and colours. journal: a syslog level before each line. automatic: journal when stderr goes
/// there.
enum class LogStyle { automatic, people, journal };
/// Call before the first line is written.
void set_log_style(LogStyle style);

/// Writes one line, `component: message`. Thread-safe; never throws.
void log_line(LogLevel level, std::string_view component, std::string_view message) noexcept;

inline void log_debug(std::string_view component, std::string_view message) noexcept {
    log_line(LogLevel::debug, component, message);
}
inline void log_info(std::string_view component, std::string_view message) noexcept {
    log_line(LogLevel::info, component, message);
}
inline void log_warning(std::string_view component, std::string_view message) noexcept {
    log_line(LogLevel::warning, component, message);
}
inline void log_error(std::string_view component, std::string_view message) noexcept {
    log_line(LogLevel::error, component, message);
}

}  // namespace pantheon

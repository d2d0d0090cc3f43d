#include "runtime/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <cstdlib>

namespace pantheon {
namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
    switch (level) {
        case LogLevel::debug:
            return spdlog::level::debug;
        case LogLevel::info:
            return spdlog::level::info;
        case LogLevel::warning:
            return spdlog::level::warn;
        case LogLevel::error:
            return spdlog::level::err;
        case LogLevel::off:
            break;
    }
    return spdlog::level::off;
}

std::atomic<LogStyle> style_in_force{LogStyle::automatic};

bool is_for_journal() {
    if (style_in_force != LogStyle::automatic) return style_in_force == LogStyle::journal;
    return std::getenv("JOURNAL_STREAM") != nullptr;  // set by systemd
}

spdlog::logger& logger() {
    // Leaked on purpose: threads may log while static destructors run.
    static spdlog::logger* instance = [] {
        auto* log = new spdlog::logger("pantheon", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
        log->set_pattern(is_for_journal() ? "%v" : "%Y-%m-%d %H:%M:%S.%e %^%-7l%$ %v");
        return log;
    }();
    return *instance;
}

/// journald reads a leading <n> as the syslog priority.
std::string_view journal_prefix(LogLevel level) {
    switch (level) {
        case LogLevel::debug:
            return "<7>";
        case LogLevel::info:
            return "<6>";
        case LogLevel::warning:
            return "<4>";
        default:
            return "<3>";
    }
}

}  // namespace

bool parse_log_level(std::string_view name, LogLevel& level) {
    static constexpr std::pair<std::string_view, LogLevel> kNames[] = {{"debug", LogLevel::debug},
                                                                       {"info", LogLevel::info},
                                                                       {"warning", LogLevel::warning},
                                                                       {"error", LogLevel::error},
                                                                       {"off", LogLevel::off}};
    for (const auto& [text, value] : kNames)
        if (text == name) {
            level = value;
            return true;
        }
    return false;
}

void set_log_style(LogStyle style) {
    style_in_force = style;
}

void set_log_level(LogLevel level) {
    logger().set_level(to_spdlog(level));
}

void log_line(LogLevel level, std::string_view component, std::string_view message) noexcept {
    try {
        const std::string_view prefix = is_for_journal() ? journal_prefix(level) : std::string_view{};
        logger().log(to_spdlog(level), "{}{}: {}", prefix, component, message);
    } catch (...) {
        // Nothing sensible can be done about a log that cannot be written.
    }
}

}  // namespace pantheon

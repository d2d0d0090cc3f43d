#include "runtime/cli/top_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "runtime/base/units.h"

namespace pantheon::cli {
namespace {

const Json& at(const Json& map, std::initializer_list<const char*> path) {
    static const Json kNothing;
    const Json* here = &map;
    for (const char* key : path) {
        if (!here->is_object()) return kNothing;
        const auto found = here->find(key);
        if (found == here->end()) return kNothing;
        here = &*found;
    }
    return *here;
}

std::int64_t number(const Json& map, std::initializer_list<const char*> path) {
    const Json& value = at(map, path);
    return value.is_number() ? static_cast<std::int64_t>(value.get<double>()) : 0;
}

std::string word(const Json& map, std::initializer_list<const char*> path) {
    const Json& value = at(map, path);
    return value.is_string() ? value.get<std::string>() : std::string();
}

std::string bytes(const Json& map, std::initializer_list<const char*> path) {
    return format_bytes(static_cast<std::uint64_t>(std::max<std::int64_t>(0, number(map, path))));
}

std::string duration(std::int64_t seconds) {
    if (seconds < 3600) return fmt::format("{}:{:02}", seconds / 60, seconds % 60);
    return fmt::format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

/// Counted units per second since the earlier sample; nothing when that was another run of the daemon.
std::string rate(const TopSample& now, const std::optional<TopSample>& before, const char* counter) {
    if (!before || number(before->status, {"uptime_s"}) > number(now.status, {"uptime_s"})) return {};
    const double seconds = std::chrono::duration<double>(now.at - before->at).count();
    const std::int64_t n =
        number(now.status, {"tokens", counter}) - number(before->status, {"tokens", counter});
    if (seconds <= 0 || n < 0) return {};
    return fmt::format(" ({:.1f}/s)", static_cast<double>(n) / seconds);
}

std::string bar(std::int64_t n_full, std::int64_t n_all) {
    constexpr std::int64_t kMost = 32;
    const std::int64_t n = std::clamp<std::int64_t>(n_all, 0, kMost);
    const std::int64_t full =
        n_all > 0 ? std::clamp<std::int64_t>(n_full * n / n_all, n_full > 0 ? 1 : 0, n) : 0;
    return '[' + std::string(static_cast<std::size_t>(full), '#') +
           std::string(static_cast<std::size_t>(n - full), '.') + ']';
}

std::string engine_line(const Json& engine) {
    const std::int64_t busy = number(engine, {"slots", "busy"}), all = number(engine, {"slots", "effective"});
    std::int64_t kv_used = 0, kv_pool = 0;
    for (const Json& die : at(engine, {"dies"})) {
        kv_used += number(die, {"kv_used_bytes"});
        kv_pool += number(die, {"kv_pool_bytes"});
    }
    return fmt::format("{:<10} {:<9} slots {} {}/{}, {} parked  queue {}/{}  KV {} of {}  step {} ms ago",
                       word(engine, {"name"}), word(engine, {"state"}), bar(busy, all), busy, all,
                       number(engine, {"slots", "parked"}), number(engine, {"queue", "waiting"}),
                       number(engine, {"queue", "limit"}), format_bytes(static_cast<std::uint64_t>(kv_used)),
                       format_bytes(static_cast<std::uint64_t>(kv_pool)),
                       number(engine, {"last_step_age_ms"}));
}

std::string request_line(const Json& request) {
    const Json& id = at(request, {"id"});
    return fmt::format("  {:<24} {:<10} {}", id.is_string() ? id.get<std::string>() : id.dump(),
                       word(request, {"phase"}), duration(number(request, {"age_ms"}) / 1000));
}

/// The first `width` code points, so that no character is cut in two.
std::string cut(const std::string& line, int width) {
    int n = 0;
    for (std::size_t i = 0; i < line.size(); ++i)
        if ((static_cast<unsigned char>(line[i]) & 0xC0) != 0x80 && n++ == width) return line.substr(0, i);
    return line;
}

}  // namespace

std::string top_text(const TopSample& now, const std::optional<TopSample>& before, int width, int height) {
    const Json& status = now.status;
    std::vector<std::string> lines;
    lines.push_back(fmt::format("pantheond {} {}, up {}, {}", word(status, {"version"}),
                                word(status, {"state"}), duration(number(status, {"uptime_s"})),
                                word(status, {"model", "name"})));
    lines.push_back(fmt::format("tokens     completion {}{}  prompt {}{}  cached {}",
                                number(status, {"tokens", "completion"}), rate(now, before, "completion"),
                                number(status, {"tokens", "prompt"}), rate(now, before, "prompt"),
                                number(status, {"tokens", "cached"})));
    lines.push_back(fmt::format("memory     {}, rung {}  cache {} of {}, hits {}, misses {}",
                                word(status, {"memory", "level"}), number(status, {"memory", "rung"}),
                                bytes(status, {"cache", "bytes"}), bytes(status, {"cache", "limit_bytes"}),
                                number(status, {"cache", "hits"}), number(status, {"cache", "misses"})));
    for (const Json& engine : at(status, {"engines"})) lines.push_back(engine_line(engine));
    const Json& requests = at(status, {"requests"});
    if (!requests.empty()) lines.push_back(fmt::format("your requests: {}", requests.size()));
    for (const Json& request : requests) lines.push_back(request_line(request));

    const auto n_lines = std::min(lines.size(), static_cast<std::size_t>(std::max(1, height)));
    std::string out;
    for (std::size_t i = 0; i < n_lines; ++i) out += cut(lines[i], width) + '\n';
    return out;
}

}  // namespace pantheon::cli

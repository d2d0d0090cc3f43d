#include "runtime/config/free_memory.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>

#include "runtime/config/cgroups.h"

namespace pantheon::config {
namespace {

/// A file of one number; nothing for "max" and for what cannot be read.
std::optional<std::int64_t> number_in(const std::string& path) {
    const auto line = first_line(path);
    if (!line) return std::nullopt;
    std::istringstream in(*line);
    std::int64_t value = 0;
    if (!(in >> value)) return std::nullopt;
    return value;
}

/// The value behind `name` in a file of "name value" lines.
std::optional<std::int64_t> value_of(const std::string& path, std::string_view name) {
    std::ifstream in(path);
    std::string key;
    std::int64_t value = 0;
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        if (words >> key >> value && key == name) return value;
    }
    return std::nullopt;
}

/// What the group may still take. Page cache that can be given back counts as free.
std::optional<std::int64_t> room_in(const CgroupDir& group) {
    const auto limit = number_in(group.path + (group.is_v2 ? "/memory.max" : "/memory.limit_in_bytes"));
    const auto used = number_in(group.path + (group.is_v2 ? "/memory.current" : "/memory.usage_in_bytes"));
    if (!limit || !used) return std::nullopt;
    const auto cache =
        value_of(group.path + "/memory.stat", group.is_v2 ? "inactive_file" : "total_inactive_file");
    constexpr std::int64_t kUnlimited = std::int64_t{1} << 60;  // version 1 says "none" with a huge number
    if (*limit >= kUnlimited) return std::nullopt;
    return std::max<std::int64_t>(0, *limit - *used + cache.value_or(0));
}

}  // namespace

std::int64_t free_memory_bytes(const std::string& root) {
    std::int64_t free = value_of(root + "/proc/meminfo", "MemAvailable:").value_or(0) * 1024;
    for (const CgroupDir& group : own_cgroups("memory", root))
        if (const auto room = room_in(group)) free = std::min(free, *room);
    return free;
}

}  // namespace pantheon::config

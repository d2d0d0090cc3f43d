// The kernel's files about memory, as text and as numbers. Parsing is total: what is not understood is
// nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pantheon::memory {

struct HostMemory {
    std::uint64_t total_bytes = 0;
    std::uint64_t available_bytes = 0;
};
/// /proc/meminfo
std::optional<HostMemory> parse_meminfo(std::string_view text);

/// memory.max, memory.high and the like: nothing for "max", and for the huge number by which version 1 says
/// that there is no limit.
std::optional<std::uint64_t> parse_limit(std::string_view text);

/// The number behind `name` in lines of "name number", such as memory.stat.
std::optional<std::uint64_t> stat_value(std::string_view text, std::string_view name);

struct Pressure {
    double some_avg10 = 0;  // percent
    double full_avg10 = 0;  // absent on kernels that do not say: 0
};
/// /proc/pressure/memory and memory.pressure
std::optional<Pressure> parse_pressure(std::string_view text);

/// The files of one control group; what cannot be read is empty.
struct GroupFiles {
    std::string max, high, current, stat;  // version 1: limit_in_bytes, nothing, usage_in_bytes, stat
};
struct GroupMemory {
    std::uint64_t limit_bytes = 0;  // the lower one of max and high
    std::uint64_t used_bytes = 0;   // without page cache, which can be given back
};
/// Nothing where there is no limit.
std::optional<GroupMemory> group_memory(const GroupFiles& files, bool is_v2);

/// Base64 as systemd writes $MEMORY_PRESSURE_WRITE.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace pantheon::memory

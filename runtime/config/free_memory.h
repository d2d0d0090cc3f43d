// How much memory this process may still take.
#pragma once

#include <cstdint>
#include <string>

namespace pantheon::config {

/// The least of what the host has available and what this process's control groups and their ancestors leave;
/// 0 when the host does not say. Reads root + "/proc/meminfo" and what own_cgroups() names.
std::int64_t free_memory_bytes(const std::string& root = "");

}  // namespace pantheon::config

// Where this process stands in the kernel's tree of control groups.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pantheon::config {

struct CgroupDir {
    std::string path;
    bool is_v2 = false;
};

/// The folder of this process's group for the controller and those of all its ancestors, versions 1 and 2: a
/// limit on any of them binds. Reads root + "/proc/self/cgroup"; folders lie below root + "/sys/fs/cgroup".
std::vector<CgroupDir> own_cgroups(std::string_view controller, const std::string& root = "");

/// Nothing when the file cannot be read or is empty.
std::optional<std::string> first_line(const std::string& path);

}  // namespace pantheon::config

#include "runtime/config/cgroups.h"

#include <algorithm>
#include <fstream>

namespace pantheon::config {
namespace {

bool has_controller(std::string_view list, std::string_view name) {
    while (!list.empty()) {
        const std::size_t comma = list.find(',');
        if (list.substr(0, comma) == name) return true;
        list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
    }
    return false;
}

}  // namespace

std::optional<std::string> first_line(const std::string& path) {
    std::ifstream in(path);
    std::string line;
    if (!std::getline(in, line)) return std::nullopt;
    return line;
}

std::vector<CgroupDir> own_cgroups(std::string_view controller, const std::string& root) {
    std::vector<CgroupDir> dirs;
    std::ifstream in(root + "/proc/self/cgroup");
    for (std::string line; std::getline(in, line);) {  // "0::/a/b" or "4:cpu,cpuacct:/a/b"
        const std::size_t first = line.find(':');
        const std::size_t second = line.find(':', first + 1);
        if (first == std::string::npos || second == std::string::npos) continue;
        const std::string controllers = line.substr(first + 1, second - first - 1);
        const bool is_v2 = controllers.empty();
        if (!is_v2 && !has_controller(controllers, controller)) continue;
        const std::string mount = root + "/sys/fs/cgroup" + (is_v2 ? "" : "/" + std::string(controller));
        for (std::string path = line.substr(second + 1);; path.resize(path.rfind('/'))) {
            if (path == "/") path.clear();
            dirs.push_back({mount + path, is_v2});
            if (path.find('/') == std::string::npos) break;
        }
    }
    return dirs;
}

}  // namespace pantheon::config

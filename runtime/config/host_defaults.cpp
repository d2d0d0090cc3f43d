#include "runtime/config/host_defaults.h"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <sstream>

#include "runtime/config/cgroups.h"
#include "runtime/config/free_memory.h"

namespace pantheon::config {
namespace {

/// The CPUs this process may run on. A machine may have more than a fixed cpu_set_t holds.
std::vector<int> allowed_cpus() {
    for (int n_cpus = 1024; n_cpus <= 1 << 20; n_cpus *= 2) {
        cpu_set_t* set = CPU_ALLOC(static_cast<std::size_t>(n_cpus));
        if (set == nullptr) break;
        const std::size_t n_bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(n_cpus));
        CPU_ZERO_S(n_bytes, set);
        std::vector<int> cpus;
        const bool is_read = sched_getaffinity(0, n_bytes, set) == 0;
        for (int cpu = 0; is_read && cpu < n_cpus; ++cpu)
            if (CPU_ISSET_S(static_cast<std::size_t>(cpu), n_bytes, set)) cpus.push_back(cpu);
        CPU_FREE(set);
        if (is_read) return cpus;
    }
    return {0};
}

std::optional<std::int64_t> ceil_ratio(double quota, double period) {
    if (!(quota > 0) || !(period > 0)) return std::nullopt;
    return std::max<std::int64_t>(1, static_cast<std::int64_t>((quota + period - 1) / period));
}

/// cpu.max: "max 100000" or "150000 100000".
std::optional<std::int64_t> quota_v2(const std::string& dir) {
    const auto line = first_line(dir + "/cpu.max");
    if (!line) return std::nullopt;
    std::istringstream in(*line);
    double quota = 0;
    double period = 0;
    if (!(in >> quota >> period)) return std::nullopt;  // "max"
    return ceil_ratio(quota, period);
}

std::optional<std::int64_t> quota_v1(const std::string& dir) {
    const auto quota = first_line(dir + "/cpu.cfs_quota_us");
    const auto period = first_line(dir + "/cpu.cfs_period_us");
    if (!quota || !period) return std::nullopt;
    return ceil_ratio(std::atof(quota->c_str()), std::atof(period->c_str()));
}

}  // namespace

Environment process_environment() {
    return [](std::string_view name) -> std::optional<std::string> {
        const char* value = std::getenv(std::string(name).c_str());
        if (value == nullptr || *value == '\0') return std::nullopt;
        return value;
    };
}

std::string default_endpoint(const Environment& env) {
    const auto user_dir = env("XDG_RUNTIME_DIR");
    // systemd sets RUNTIME_DIRECTORY for its services; below XDG_RUNTIME_DIR it was a user's own manager.
    // INVOCATION_ID alone says less: shells of a desktop inherit one.
    const auto runtime_directory = env("RUNTIME_DIRECTORY");
    if (runtime_directory && !(user_dir && runtime_directory->starts_with(*user_dir)))
        return std::string(kServiceEndpoint);
    if (user_dir) return "ipc://" + *user_dir + "/pantheond.sock";
    return std::string(kServiceEndpoint);
}

std::int64_t physical_cores(const std::vector<int>& cpus, const std::string& root) {
    std::set<std::string> cores;
    for (const int cpu : cpus) {
        const std::string dir = root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
        cores.insert(first_line(dir + "thread_siblings_list").value_or("alone " + std::to_string(cpu)));
    }
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(cores.size()));
}

std::optional<std::int64_t> cgroup_cpu_quota(const std::string& root) {
    std::optional<std::int64_t> tightest;
    for (const CgroupDir& group : own_cgroups("cpu", root)) {
        const auto quota = group.is_v2 ? quota_v2(group.path) : quota_v1(group.path);
        if (quota && (!tightest || *quota < *tightest)) tightest = quota;
    }
    return tightest;
}

std::string embedded_model_path(const std::string& program) {
    std::error_code error;
    const auto file = std::filesystem::canonical(program, error);
    if (error) return PANTHEON_DATA_DIR "/model.gguf";  // as it was configured
    return (file.parent_path() / PANTHEON_DATA_FROM_BIN "/model.gguf").lexically_normal();
}

std::int64_t free_disk_bytes(const std::string& dir) {
    for (std::filesystem::path at = dir; !at.empty(); at = at.parent_path()) {
        std::error_code error;
        const auto space = std::filesystem::space(at, error);
        if (!error) return static_cast<std::int64_t>(std::min<std::uintmax_t>(space.available, INT64_MAX));
        if (at == at.root_path()) break;
    }
    return 0;
}

namespace {

/// As free_disk_bytes(), but read once for each folder: a reload must not find another default because
/// something has been written meanwhile.
std::int64_t free_disk_bytes_at_first(const std::string& dir) {
    static std::mutex mutex;
    static std::map<std::string, std::int64_t> found;
    const std::lock_guard lock(mutex);
    const auto [at, is_new] = found.try_emplace(dir, 0);
    if (is_new) at->second = free_disk_bytes(dir);
    return at->second;
}

}  // namespace

HostDefaults host_defaults() {
    HostDefaults host;
    host.model_path = embedded_model_path();
    host.endpoint = default_endpoint(process_environment());
    host.n_cores = physical_cores(allowed_cpus());
    if (const auto quota = cgroup_cpu_quota()) host.n_cores = std::min(host.n_cores, *quota);
    // Read once: a reload must not find another default because memory has been used meanwhile.
    static const std::int64_t free_bytes = free_memory_bytes();
    host.free_bytes = free_bytes;
    // systemd may name several directories; the first is ours.
    const std::string states = process_environment()("STATE_DIRECTORY").value_or("");
    host.state_directory = states.substr(0, states.find(':'));
    host.free_disk_bytes = free_disk_bytes_at_first;
    return host;
}

}  // namespace pantheon::config

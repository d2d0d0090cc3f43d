// Defaults that depend on the host and on how the process was started. Read once and passed in, so that
// loading a file is a pure function of its text and these.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pantheon::config {

struct HostDefaults {
    std::string model_path;       // the embedded model's place below the install prefix
    std::string endpoint;         // where to listen
    std::int64_t n_cores = 1;     // physical cores that affinity and cgroup allow
    std::int64_t free_bytes = 0;  // memory that this process may still take
    std::string state_directory;  // $STATE_DIRECTORY; empty: none
    /// Free space on the disk of a folder, bytes; none: nobody knows.
    std::function<std::int64_t(const std::string& dir)> free_disk_bytes;
};

HostDefaults host_defaults();

/// What this process may still write where the folder is or, when it is yet to be made, its nearest parent
/// that is there; 0 when the system does not say.
std::int64_t free_disk_bytes(const std::string& dir);

/// The embedded model of the installation (or build folder) that this program lies in, wherever it was moved
/// to: share/pantheon/model.gguf beside its bin. Symbolic links to the program are followed.
std::string embedded_model_path(const std::string& program = "/proc/self/exe");

/// A variable's value, or nothing when it is unset or empty.
using Environment = std::function<std::optional<std::string>(std::string_view name)>;
Environment process_environment();

/// Where the system service listens.
inline constexpr std::string_view kServiceEndpoint = "ipc:///run/pantheon/pantheond.sock";

/// Where the daemon listens unless told otherwise: below $XDG_RUNTIME_DIR when a user starts it, else
/// kServiceEndpoint, as a system service and where there is no such directory (a container, a root shell).
std::string default_endpoint(const Environment& env);

/// Distinct physical cores among `cpus` (siblings of a core count once; a CPU without topology files counts
/// as a core), by the files below `root` + "/sys/devices/system/cpu".
std::int64_t physical_cores(const std::vector<int>& cpus, const std::string& root = "");

/// The tightest CPU quota of this process's cgroup and its ancestors, in whole CPUs rounded up; nothing when
/// there is none. Reads root + "/proc/self/cgroup" and root + "/sys/fs/cgroup", versions 1 and 2.
std::optional<std::int64_t> cgroup_cpu_quota(const std::string& root = "");

}  // namespace pantheon::config

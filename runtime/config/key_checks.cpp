#include "runtime/config/key_checks.h"

#include <pwd.h>
#include <sys/un.h>

#include <array>
#include <charconv>
#include <optional>

#include "runtime/config/nearest.h"
#include "runtime/config/toml_tree.h"

namespace pantheon::config {
namespace {

constexpr std::size_t kMaxSocketPath = sizeof(sockaddr_un::sun_path) - 1;

std::optional<std::uint32_t> parse_uid(const std::string& text) {
    std::uint32_t uid = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), uid);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return uid;
}

std::optional<std::uint32_t> uid_of_user(const std::string& name) {
    std::array<char, 16384> buffer;
    passwd entry{};
    passwd* found = nullptr;
    if (getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr)
        return std::nullopt;
    return entry.pw_uid;
}

bool is_cuda_die(std::string_view die) {
    return die == "cuda" || die.starts_with("cuda:");
}

Status check_die(const std::string& die) {
    static constexpr std::string_view kKnown[] = {"cpu", "ref"};
    if (die == "cpu" || die == "ref") return {};
    if (is_cuda_die(die))
        return Error(Code::unimplemented, quote_toml(die) + " is not available in this version");
    if (die.find('/') != std::string::npos)
        return Error(Code::unimplemented,
                     quote_toml(die) + ": dies of other hosts are not available in this version");
    return Error(Code::invalid_argument,
                 quote_toml(die) + " is no die; the nearest one is " + quote_toml(nearest_name(die, kKnown)));
}

}  // namespace

Status auto_model_path(Config& config, std::size_t, const HostDefaults& host) {
    config.model.path = host.model_path;
    return {};
}

Status auto_disk_bytes(Config& config, std::size_t, const HostDefaults& host) {
    const std::string& dir = config.sessions.dir;
    config.sessions.disk_bytes = dir.empty() || !host.free_disk_bytes ? 0 : host.free_disk_bytes(dir) / 10;
    return {};
}

Status check_sessions_dir(Config& config, std::size_t) {
    const std::string& dir = config.sessions.dir;
    if (dir.empty() || dir.front() == '/') return {};
    return Error(Code::invalid_argument, quote_toml(dir) + ": is not absolute");
}

Status check_readings_dir(Config& config, std::size_t) {
    const std::string& dir = config.memory.readings_dir;
    if (dir.empty() || dir.front() == '/') return {};
    return Error(Code::invalid_argument, quote_toml(dir) + ": is not absolute");
}

Status auto_endpoint(Config& config, std::size_t, const HostDefaults& host) {
    config.ipc.endpoint = host.endpoint;
    return {};
}

Status check_model_path(Config& config, std::size_t) {
    if (config.model.path.empty()) return Error(Code::invalid_argument, "is empty");
    return {};
}

Status check_endpoint(Config& config, std::size_t) {
    const std::string& endpoint = config.ipc.endpoint;
    if (endpoint.starts_with("tcp://"))
        return Error(
            Code::unimplemented,
            quote_toml(endpoint) + ": tcp needs CURVE keys, which are not available in this version");
    if (!endpoint.starts_with("ipc://"))
        return Error(Code::invalid_argument, quote_toml(endpoint) + ": want \"ipc://\" and a path");
    const std::string_view path = std::string_view(endpoint).substr(6);
    if (path.empty() || path == "*")
        return Error(Code::invalid_argument, quote_toml(endpoint) + ": the path is missing");
    if (path.front() != '/')
        return Error(Code::invalid_argument, quote_toml(endpoint) + ": the path is not absolute");
    if (path.size() > kMaxSocketPath)
        return Error(Code::invalid_argument,
                     quote_toml(endpoint) + ": the path has " + std::to_string(path.size()) +
                         " bytes, a socket's has at most " + std::to_string(kMaxSocketPath));
    return {};
}

Status check_admins(Config& config, std::size_t) {
    config.ipc.admin_uids.clear();
    for (const std::string& admin : config.ipc.admins) {
        auto uid = parse_uid(admin);
        if (!uid) uid = uid_of_user(admin);
        if (!uid) return Error(Code::invalid_argument, quote_toml(admin) + ": no such user on this host");
        config.ipc.admin_uids.push_back(*uid);
    }
    return {};
}

Status check_overflow(Config& config, std::size_t) {
    if (config.kv.overflow != model::KvOverflow::slide || config.kv.sink < config.kv.n_ctx) return {};
    return Error(Code::invalid_argument, "\"slide\": kv.sink " + std::to_string(config.kv.sink) +
                                             " leaves nothing of kv.n_ctx " +
                                             std::to_string(config.kv.n_ctx));
}

Status check_engine_name(Config& config, std::size_t engine) {
    if (config.engines[engine].name.empty()) return Error(Code::invalid_argument, "is empty");
    return {};
}

Status check_dies(Config& config, std::size_t engine) {
    const std::vector<std::string>& dies = config.engines[engine].dies;
    if (dies.empty()) return Error(Code::invalid_argument, "names no die");
    for (const std::string& die : dies)
        if (Status status = check_die(die); !status) return status;
    if (dies.size() > 1)
        return Error(Code::unimplemented, "an engine of " + std::to_string(dies.size()) +
                                              " dies is not available in this version; name one");
    return {};
}

}  // namespace pantheon::config

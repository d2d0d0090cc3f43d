// `pantheond`: configuration, model, actors, socket, in this order.
#include <exception>
#include <filesystem>
#include <iostream>

#include "model/gguf/file_warmer.h"
#include "runtime/base/log.h"
#include "runtime/base/standard_streams.h"
#include "runtime/config/free_memory.h"
#include "runtime/config/load.h"
#include "runtime/daemon/command_line.h"
#include "runtime/daemon/config_file.h"
#include "runtime/daemon/load_model.h"
#include "runtime/daemon/notifier.h"
#include "runtime/daemon/service.h"
#include "runtime/memory/host_readings.h"

namespace pantheon::daemon {
namespace {

constexpr int kClean = 0;
constexpr int kFailed = 1;
constexpr int kBadConfigOrModel = 78;

config::ConfigLoad read_config(const CommandLine& command) {
    std::string file = command.config_file;
    if (file.empty() && std::filesystem::exists(kDefaultConfigFile)) file = kDefaultConfigFile;
    const config::HostDefaults host = config::host_defaults();
    auto load = file.empty() ? config::load_config_text("", "", host) : config::load_config(file, host);
    if (load.is_ok()) config::check_model_file(load);
    // A start finds it out when it loads the model.
    if (load.is_ok() && command.check_config && load.config->kv.pool_bytes) {
        set_log_level(LogLevel::warning);
        if (Status pool = check_kv_pool(*load.config); !pool) {
            load.problems.push_back(
                {load.set_at.at("kv.pool_bytes"), pool.error().code(), pool.error().message()});
            load.config = nullptr;
        }
    }
    return load;
}

ipc::RouterConfig router_config(const config::Config& config) {
    ipc::RouterConfig router;
    router.endpoint = config.ipc.endpoint;
    router.max_unread = static_cast<std::size_t>(config.ipc.max_unread);
    router.heartbeat_timeout += config.ipc.stall;  // who does not read answers no probes
    return router;
}

int run(const CommandLine& command) {
    const config::ConfigLoad load = read_config(command);
    if (!load.is_ok()) {
        std::cerr << load.report() << '\n';
        return kBadConfigOrModel;
    }
    const config::Config& config = *load.config;
    if (command.check_config) {
        std::cout << (config.file.empty() ? std::string("defaults") : config.file) << ": ok\n";
        return kClean;
    }
    set_log_style(command.foreground ? LogStyle::people : LogStyle::automatic);
    set_log_level(command.plan ? LogLevel::warning : config.log.level);
    block_signals();

    Notifier notifier;
    if (!command.plan) notifier.loading(config.model.path);
    auto loaded = load_model(config);
    if (!loaded) {
        log_error("daemon", loaded.error().to_string());
        if (!command.plan) notifier.failed(kBadConfigOrModel, loaded.error().to_string());
        return kBadConfigOrModel;
    }
    if (command.plan) {
        std::cout << describe_plan(config, *loaded);
        return kClean;
    }
    const model::FileWarmer warmer(loaded->files, [] { return config::free_memory_bytes(); });
    // A folder of files has no pressure that the kernel would wake us for.
    const std::string& readings_dir = config.memory.readings_dir;
    loaded->settings.memory.source = std::make_shared<memory::HostReadings>(
        readings_dir, readings_dir.empty() ? memory::PressureWatch(config::process_environment())
                                           : memory::PressureWatch());
    if (!config.file.empty())
        loaded->settings.config_source = std::make_shared<ConfigFile>(load.config, loaded->file_sampling);
    return serve(std::move(loaded->settings), router_config(config), notifier);
}

}  // namespace
}  // namespace pantheon::daemon

int main(int argc, char** argv) {
    pantheon::reserve_standard_streams();
    const pantheon::daemon::Parsed parsed = pantheon::daemon::parse_command_line(argc, argv);
    if (!parsed.command) return parsed.exit_code;
    try {
        return pantheon::daemon::run(*parsed.command);
    } catch (const std::exception& error) {
        pantheon::log_error("daemon", std::string("failed: ") + error.what());
        return pantheon::daemon::kFailed;
    }
}

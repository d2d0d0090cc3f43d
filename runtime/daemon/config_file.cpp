#include "runtime/daemon/config_file.h"

#include "runtime/base/log.h"
#include "runtime/config/diff.h"
#include "runtime/config/load.h"
#include "runtime/daemon/live_settings.h"

namespace pantheon::daemon {
namespace {

std::vector<actors::ConfigChange> changes_of(const config::Config& before, const config::Config& after,
                                             config::Reload which) {
    std::vector<actors::ConfigChange> changes;
    for (config::ConfigChange& change : config::diff_config(before, after))
        if (change.reload == which)
            changes.push_back({std::move(change.path), std::move(change.before), std::move(change.after)});
    return changes;
}

}  // namespace

ConfigFile::ConfigFile(std::shared_ptr<const config::Config> started_with,
                       const actors::SamplingDefaults& of_file)
    : started_with_(std::move(started_with)), in_force_(started_with_), of_file_(of_file) {}

actors::ReloadOutcome ConfigFile::reload(const actors::DaemonSettings& in_force, bool is_dry_run) {
    actors::ReloadOutcome outcome;
    outcome.file = started_with_->file;
    outcome.is_dry_run = is_dry_run;

    // First phase: everything that can go wrong, and nothing else.
    config::ConfigLoad load = config::load_config(outcome.file, config::host_defaults());
    // The model in use stays open whatever becomes of its file; another one has to be there.
    if (load.is_ok() && load.config->model.path != in_force_->model.path) config::check_model_file(load);
    if (!load.is_ok()) {
        outcome.error = load.error();
        return outcome;
    }
    outcome.applied = changes_of(*in_force_, *load.config, config::Reload::live);
    outcome.pending_restart = changes_of(*started_with_, *load.config, config::Reload::restart);
    if (is_dry_run) return outcome;

    // Second phase: cannot fail.
    in_force_ = load.config;
    set_log_level(in_force_->log.level);
    auto next = std::make_shared<actors::DaemonSettings>(in_force);
    const std::int32_t n_ctx = next->limits.n_ctx;
    next->limits = limits_of(*in_force_);
    next->cache = cache_of(*in_force_);
    next->memory.ladder = ladder_of(*in_force_);
    next->limits.n_ctx = n_ctx;  // the states are made for it
    next->text.sampling = sampling_defaults(in_force_->sampling, of_file_);
    next->pending_restart.clear();
    for (const actors::ConfigChange& change : outcome.pending_restart)
        next->pending_restart.push_back(change.key);
    outcome.settings = std::move(next);
    return outcome;
}

}  // namespace pantheon::daemon

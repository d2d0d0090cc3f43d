#include "actors/config_watcher.h"

#include <sstream>

namespace pantheon::actors {
namespace {

void log_outcome(const ReloadOutcome& outcome) {
    const char* const kName = ConfigWatcherState::name;
    const std::string what = outcome.is_dry_run ? "dry run: " : "reload: ";
    if (outcome.error) {
        std::istringstream problems(outcome.error->message());
        for (std::string line; std::getline(problems, line);) log_error(kName, what + line);
        log_error(kName, what + "the configuration in force stays");
        return;
    }
    for (const ConfigChange& change : outcome.applied)
        log_info(kName, what + change.key + ": " + change.before + " → " + change.after);
    for (const ConfigChange& change : outcome.pending_restart)
        log_warning(kName,
                    what + change.key + ": " + change.before + " → " + change.after + " waits for a restart");
    if (outcome.applied.empty() && outcome.pending_restart.empty())
        log_info(kName, what + "nothing has changed");
}

}  // namespace

ReloadOutcome ConfigWatcherState::reload(bool is_dry_run) {
    ReloadOutcome outcome;
    if (settings->config_source) {
        outcome = settings->config_source->reload(*settings, is_dry_run);
    } else {
        outcome.is_dry_run = is_dry_run;
        outcome.error =
            Error(Code::failed_precondition, "reload: the daemon was started without a configuration file");
    }
    log_outcome(outcome);
    if (outcome.settings) settings = outcome.settings;
    return outcome;
}

ConfigActor::behavior_type config_watcher(ConfigActor::stateful_pointer<ConfigWatcherState> self,
                                          SettingsPtr settings) {
    install_handlers(self);
    self->state.settings = std::move(settings);
    return {
        [self](const ReloadConfig& message) -> ReloadOutcomePtr {
            return std::make_shared<const ReloadOutcome>(self->state.reload(message.is_dry_run));
        },
    };
}

}  // namespace pantheon::actors

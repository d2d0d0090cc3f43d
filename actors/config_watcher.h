// The actor that owns the configuration file. It reads and checks; the supervisor hands the result round.
#pragma once

#include "actors/messages.h"

namespace pantheon::actors {

struct ConfigWatcherState {
    static inline const char* name = "config";
    SettingsPtr settings;  // in force

    ReloadOutcome reload(bool is_dry_run);
};

/// Spawn detached: reading a file may block.
ConfigActor::behavior_type config_watcher(ConfigActor::stateful_pointer<ConfigWatcherState> self,
                                          SettingsPtr settings);

}  // namespace pantheon::actors

// The configuration file of the running daemon: what it said at the start, what is in force, and how a reload
// gets from one to the next.
#pragma once

#include <memory>
#include <string>

#include "actors/settings.h"
#include "runtime/config/config.h"

namespace pantheon::daemon {

class ConfigFile : public actors::ConfigSource {
  public:
    /// of_file: the model's own sampling defaults, which a key that is taken out of the configuration falls
    /// back to.
    ConfigFile(std::shared_ptr<const config::Config> started_with, const actors::SamplingDefaults& of_file);

    actors::ReloadOutcome reload(const actors::DaemonSettings& in_force, bool is_dry_run) override;

  private:
    std::shared_ptr<const config::Config> started_with_;  // keys that wait for a restart keep these values
    std::shared_ptr<const config::Config> in_force_;      // live keys: as read last
    actors::SamplingDefaults of_file_;
};

}  // namespace pantheon::daemon

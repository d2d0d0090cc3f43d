// What a reload would change.
#pragma once

#include <string>
#include <vector>

#include "runtime/config/config.h"
#include "runtime/config/schema.h"

namespace pantheon::config {

struct ConfigChange {
    std::string path;           // "kv.n_ctx", "engine[1].dies" when there are several engines
    std::string before, after;  // as TOML
    Reload reload = Reload::restart;
};

/// In the order of the schema. Another number of engines is one change, of `engine`, and waits for a restart.
std::vector<ConfigChange> diff_config(const Config& before, const Config& after);

}  // namespace pantheon::config

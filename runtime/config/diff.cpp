#include "runtime/config/diff.h"

#include <algorithm>

namespace pantheon::config {

std::vector<ConfigChange> diff_config(const Config& before, const Config& after) {
    std::vector<ConfigChange> changes;
    const std::size_t n_engines = std::min(before.engines.size(), after.engines.size());
    if (before.engines.size() != after.engines.size())
        changes.push_back({"engine", std::to_string(before.engines.size()) + " engines",
                           std::to_string(after.engines.size()) + " engines", Reload::restart});
    for (const KeyRow& row : schema()) {
        if (!row.alias_of.empty()) continue;
        for (std::size_t engine = 0; engine < (row.is_per_engine() ? n_engines : 1); ++engine) {
            std::string from = value_text(row, before, engine);
            std::string to = value_text(row, after, engine);
            if (from == to) continue;
            std::string path(row.path);
            if (row.is_per_engine() && n_engines > 1)
                path = "engine[" + std::to_string(engine) + "]." + std::string(row.leaf());
            changes.push_back({std::move(path), std::move(from), std::move(to), row.reload});
        }
    }
    return changes;
}

}  // namespace pantheon::config

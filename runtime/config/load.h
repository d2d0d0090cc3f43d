// From a TOML file to a Config: all of its problems at once, each with its place, or a snapshot that is ready
// to use.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/config/config.h"
#include "runtime/config/host_defaults.h"
#include "runtime/config/toml_tree.h"

namespace pantheon::config {

struct ConfigProblem {
    Position at;  // line 0: the file as a whole
    Code code = Code::invalid_argument;
    std::string message;  // begins with the key where there is one: "kv.n_ctx: 8 is out of range: …"

    /// "pantheond.toml:4:9: invalid_argument: kv.n_ctx: …"
    std::string to_string(std::string_view file) const;
};

struct ConfigLoad {
    std::string file;
    std::shared_ptr<const Config> config;    // null exactly when there are problems
    std::vector<ConfigProblem> problems;     // in file order
    std::map<std::string, Position> set_at;  // the values that the file sets: "engine[1].dies"

    bool is_ok() const { return config != nullptr; }
    /// All problems, one a line, no newline at the end.
    std::string report() const;
    /// The report as one error, with the code of the first problem. Only when there are problems.
    Error error() const;
};

ConfigLoad load_config(const std::string& file, const HostDefaults& host);
ConfigLoad load_config_text(std::string_view text, std::string file, const HostDefaults& host);

/// Adds a problem when model.path cannot be read as a file; load.config becomes null then. Separate, because
/// whether it is there is a fact about the host, not about the text.
void check_model_file(ConfigLoad& load);

}  // namespace pantheon::config

// Every configuration key, declared once. Parsing, checks, defaults, the manual page, the check of
// etc/pantheond.toml and the reload diff are all made from these rows.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/config/config.h"
#include "runtime/config/host_defaults.h"
#include "runtime/config/toml_tree.h"

namespace pantheon::config {

/// Whether a changed value takes effect in the running process.
enum class Reload { live, restart };

/// Where a value lives. `engine` picks one of Config::engines and is ignored by keys outside them.
template <class T>
using Access = T& (*)(Config&, std::size_t engine);

/// One of a few words, kept as an enum whose values number the words.
struct Choice {
    std::string_view word;
    bool is_available = true;
};
struct ChoiceField {
    std::span<const Choice> choices;
    void (*set)(Config&, std::size_t index);
    std::size_t (*get)(const Config&);
};

using Field =
    std::variant<Access<bool>, Access<std::int64_t>, Access<std::string>, Access<std::vector<std::string>>,
                 Access<std::optional<std::int64_t>>, Access<std::optional<double>>,
                 Access<std::chrono::milliseconds>, Access<std::chrono::seconds>, ChoiceField>;

/// Both ends belong to it.
struct Range {
    double min = 0;
    double max = 0;
};

struct KeyRow {
    std::string_view path;  // "kv.n_ctx"; "engine.…" stands for each engine
    Field field;
    std::string_view fallback;  // the default, as TOML
    std::optional<Range> range = std::nullopt;
    std::string_view unit = {};
    Reload reload = Reload::restart;
    std::string_view help = {};  // one line
    /// What "auto" stands for, in words, and how it is applied; null: the key has no "auto".
    std::string_view auto_meaning = {};
    Status (*apply_auto)(Config&, std::size_t engine, const HostDefaults&) = nullptr;
    /// What a range cannot say. May fill what is derived from the value.
    Status (*check)(Config&, std::size_t engine) = nullptr;
    /// The feature that must come first: until then any value but the default is refused by name.
    std::string_view awaits = {};
    /// The key that this one is another spelling of.
    std::string_view alias_of = {};

    bool is_per_engine() const { return path.starts_with("engine.") || !alias_of.empty(); }
    std::string_view table() const { return path.substr(0, path.rfind('.')); }
    std::string_view leaf() const { return path.substr(path.rfind('.') + 1); }
};

std::span<const KeyRow> schema();
const KeyRow* find_row(std::string_view path);

/// Stores a value of the file or a default: type, range, choice and `check`. The error does not name the key.
Status apply_value(const KeyRow& row, const TomlNode& node, const HostDefaults& host, Config& config,
                   std::size_t engine);

/// The value in force, as TOML; what "auto" left open reads "auto".
std::string value_text(const KeyRow& row, const Config& config, std::size_t engine);

/// "an integer, 16 … 262144 tokens, or \"auto\"": what the key takes, for people.
std::string value_description(const KeyRow& row);

}  // namespace pantheon::config

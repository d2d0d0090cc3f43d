#include "runtime/config/load.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>

#include "runtime/config/nearest.h"
#include "runtime/config/schema.h"

namespace pantheon::config {
namespace {

constexpr std::uint64_t kMaxFileBytes = 1 << 20;

/// One key that the file sets.
struct Setting {
    const KeyRow* row;
    std::size_t engine;
    std::string shown;  // its path in messages: engine[1].dies
    Position key_at;
    const TomlNode* node;
};

bool is_known_table(std::string_view path) {
    return std::ranges::any_of(schema(), [&](const KeyRow& row) { return row.table() == path; });
}

std::string_view nearest_key(std::string_view path) {
    std::vector<std::string_view> paths;
    for (const KeyRow& row : schema()) paths.push_back(row.path);
    return nearest_name(path, paths);
}

std::string_view nearest_table(std::string_view path) {
    std::vector<std::string_view> tables;
    for (const KeyRow& row : schema())
        if (tables.empty() || tables.back() != row.table()) tables.push_back(row.table());
    return nearest_name(path, tables);
}

/// A key whose last part is right and whose table is not.
std::string_view same_leaf_elsewhere(std::string_view leaf) {
    for (const KeyRow& row : schema())
        if (row.leaf() == leaf) return row.path;
    return {};
}

class Loader {
  public:
    Loader(const TomlTable& root, const HostDefaults& host, ConfigLoad& load)
        : root_(root), host_(host), load_(load) {}

    void run() {
        collect(root_, "", "", 0);
        check_aliases();
        auto config = std::make_shared<Config>();
        config->file = load_.file;
        config->engines.resize(n_engines_);
        for (const KeyRow& row : schema())
            for (std::size_t engine = 0; engine < (row.is_per_engine() ? n_engines_ : 1); ++engine)
                apply(row, engine, *config);
        std::ranges::stable_sort(load_.problems, {}, &ConfigProblem::at);
        if (load_.problems.empty()) load_.config = std::move(config);
    }

  private:
    void problem(Position at, Code code, std::string message) {
        load_.problems.push_back({at, code, std::move(message)});
    }

    /// path: as in the schema; shown: as in messages, with the engine's number.
    void collect(const TomlTable& table, const std::string& path, const std::string& shown,
                 std::size_t engine) {
        for (const TomlEntry& entry : table) {
            const std::string dot = path.empty() ? "" : ".";
            const std::string key = path + dot + entry.key;
            const std::string name = shown + dot + entry.key;
            if (const KeyRow* row = find_row(key)) {
                load_.set_at[name] = entry.node.at;
                settings_.push_back({row, engine, name, entry.key_at, &entry.node});
            } else if (!is_known_table(key)) {
                report_unknown(entry, key, name);
            } else if (const auto* inner = std::get_if<TomlTable>(&entry.node.value)) {
                collect(*inner, key, name, engine);
            } else if (const auto* elements = std::get_if<TomlArray>(&entry.node.value);
                       elements && key == "engine") {
                collect_engines(*elements, entry.key_at);
            } else {
                problem(entry.key_at, Code::invalid_argument,
                        name + ": want a table of keys, got " + std::string(entry.node.kind()));
            }
        }
    }

    void collect_engines(const TomlArray& engines, Position at) {
        if (engines.empty()) problem(at, Code::invalid_argument, "engine: names no engine");
        for (std::size_t i = 0; i < engines.size(); ++i) {
            const std::string shown = "engine[" + std::to_string(i) + "]";
            const auto* table = std::get_if<TomlTable>(&engines[i].value);
            if (table == nullptr) {
                problem(engines[i].at, Code::invalid_argument,
                        shown + ": want a table of keys, got " + std::string(engines[i].kind()));
                continue;
            }
            if (i == 1)
                problem(engines[i].at, Code::unimplemented,
                        shown + ": more than one engine is not available in this version");
            collect(*table, "engine", shown, i);
        }
        is_engine_array_ = true;
        n_engines_ = std::max<std::size_t>(1, engines.size());
    }

    void report_unknown(const TomlEntry& entry, const std::string& key, const std::string& name) {
        std::string text = name + ": ";
        if (std::holds_alternative<TomlTable>(entry.node.value)) {
            text += "unknown table; the nearest one is [" + std::string(nearest_table(key)) + "]";
        } else if (const std::string_view right = same_leaf_elsewhere(entry.key); !right.empty()) {
            text += "misplaced key; it is " + std::string(right);
        } else {
            text += "unknown key; the nearest valid one is " + std::string(nearest_key(key));
        }
        problem(entry.key_at, Code::invalid_argument, std::move(text));
    }

    void check_aliases() {
        for (const Setting& setting : settings_) {
            if (setting.row->alias_of.empty()) continue;
            if (is_engine_array_)
                problem(setting.key_at, Code::invalid_argument,
                        setting.shown + ": only without [[engine]]; there the key is " +
                            std::string(setting.row->alias_of));
            if (const Setting* other = find(*find_row(setting.row->alias_of), 0))
                problem(setting.key_at, Code::invalid_argument,
                        setting.shown + ": also set as " + other->shown + " in line " +
                            std::to_string(other->key_at.line) + "; they are the same key");
        }
    }

    const Setting* find(const KeyRow& row, std::size_t engine) const {
        for (const Setting& setting : settings_)
            if (setting.row == &row && setting.engine == engine) return &setting;
        return nullptr;
    }

    void apply(const KeyRow& row, std::size_t engine, Config& config) {
        const Setting* setting = find(row, engine);
        const std::string name = setting ? setting->shown : std::string(row.path);
        const Position at = setting ? setting->node->at : Position{};
        if (setting == nullptr && !row.alias_of.empty()) return;

        const auto fallback = parse_toml("value = " + std::string(row.fallback));
        if (Status status =
                apply_value(row, setting ? *setting->node : std::get<TomlTable>(fallback).at(0).node, host_,
                            config, engine);
            !status) {
            problem(at, status.error().code(), name + ": " + status.error().message());
            return;
        }
        if (setting == nullptr || row.awaits.empty()) return;
        // "auto" shows as what it stands for, so the default is compared the same way.
        const std::string given = value_text(row, config, engine);
        Config defaults = config;
        if (apply_value(row, std::get<TomlTable>(fallback).at(0).node, host_, defaults, engine) &&
            given != value_text(row, defaults, engine))
            problem(at, Code::unimplemented,
                    name + ": " + given + " needs " + std::string(row.awaits) +
                        ", which is not available in this version; leave the key out or keep " +
                        std::string(row.fallback));
    }

    const TomlTable& root_;
    const HostDefaults& host_;
    ConfigLoad& load_;
    std::vector<Setting> settings_;
    std::size_t n_engines_ = 1;
    bool is_engine_array_ = false;
};

std::optional<ConfigProblem> read_file(const std::string& file, std::string& text) {
    struct stat info {};
    if (stat(file.c_str(), &info) != 0)
        return ConfigProblem{{}, errno == ENOENT ? Code::not_found : Code::unavailable, std::strerror(errno)};
    if (S_ISDIR(info.st_mode)) return ConfigProblem{{}, Code::invalid_argument, "is a directory"};
    std::ifstream in(file, std::ios::binary);
    if (!in) return ConfigProblem{{}, Code::unavailable, std::strerror(errno)};
    text.resize(kMaxFileBytes + 1);
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(in.gcount()));
    if (text.size() > kMaxFileBytes)
        return ConfigProblem{{}, Code::invalid_argument, "is larger than 1 MiB: no configuration file"};
    return std::nullopt;
}

}  // namespace

std::string ConfigProblem::to_string(std::string_view file) const {
    std::ostringstream out;
    out << (file.empty() ? "defaults" : file) << ':';
    if (at.line > 0) out << at.line << ':' << at.column << ':';
    out << ' ' << code_name(code) << ": " << message;
    return out.str();
}

std::string ConfigLoad::report() const {
    std::string text;
    for (const ConfigProblem& problem : problems) {
        if (!text.empty()) text += '\n';
        text += problem.to_string(file);
    }
    return text;
}

Error ConfigLoad::error() const {
    return {problems.at(0).code, report()};
}

ConfigLoad load_config_text(std::string_view text, std::string file, const HostDefaults& host) {
    ConfigLoad load;
    load.file = std::move(file);
    auto parsed = parse_toml(text);
    if (const auto* error = std::get_if<TomlError>(&parsed)) {
        load.problems.push_back({error->at, Code::invalid_argument, error->message});
        return load;
    }
    Loader(std::get<TomlTable>(parsed), host, load).run();
    return load;
}

ConfigLoad load_config(const std::string& file, const HostDefaults& host) {
    std::string text;
    if (auto problem = read_file(file, text)) {
        ConfigLoad load;
        load.file = file;
        load.problems.push_back(*std::move(problem));
        return load;
    }
    return load_config_text(text, file, host);
}

void check_model_file(ConfigLoad& load) {
    if (!load.config) return;
    const std::string& path = load.config->model.path;
    const auto set_at = load.set_at.find("model.path");
    const bool is_set = set_at != load.set_at.end();
    const auto refuse = [&](Code code, std::string why) {
        if (!is_set) why += " (the default, and no embedded model is installed there: set model.path)";
        load.problems.push_back(
            {is_set ? set_at->second : Position{}, code, "model.path: " + path + ": " + why});
    };
    struct stat info {};
    if (stat(path.c_str(), &info) != 0)
        refuse(errno == ENOENT ? Code::not_found : Code::unavailable, std::strerror(errno));
    else if (!S_ISREG(info.st_mode))
        refuse(Code::invalid_argument, "is no regular file");
    else if (access(path.c_str(), R_OK) != 0)
        refuse(Code::permission_denied, std::strerror(errno));
    if (!load.problems.empty()) load.config = nullptr;
}

}  // namespace pantheon::config

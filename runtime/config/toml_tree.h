// A TOML document as a plain tree with positions. The one file that includes the TOML library implements
// this, so that nobody else compiles it and nobody else depends on it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace pantheon::config {

/// 1-based; line 0 means the file as a whole.
struct Position {
    int line = 0;
    int column = 0;
    friend auto operator<=>(const Position&, const Position&) = default;
};

struct TomlNode;

struct TomlEntry;
using TomlTable = std::vector<TomlEntry>;
using TomlArray = std::vector<TomlNode>;
/// Dates and times: no key takes one.
struct TomlDateTime {};

struct TomlNode {
    Position at;
    std::variant<bool, std::int64_t, double, std::string, TomlDateTime, TomlArray, TomlTable> value;

    /// "a string", "an integer", "a table", for messages.
    std::string_view kind() const;
};

struct TomlEntry {
    std::string key;
    Position key_at;
    TomlNode node;
};

struct TomlError {
    Position at;
    std::string message;
};

/// Entries come in the order of the keys' names. Never throws; a second definition of a key is an error here.
std::variant<TomlTable, TomlError> parse_toml(std::string_view text);

/// A string as a TOML basic string, quotes included.
std::string quote_toml(std::string_view text);

}  // namespace pantheon::config

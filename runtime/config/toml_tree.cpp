#include "runtime/config/toml_tree.h"

#include <toml++/toml.h>

#include <exception>

namespace pantheon::config {
namespace {

Position position(const toml::source_region& region) {
    return {static_cast<int>(region.begin.line), static_cast<int>(region.begin.column)};
}

TomlNode convert(const toml::node& node);

TomlTable convert(const toml::table& table) {
    TomlTable entries;
    entries.reserve(table.size());
    for (const auto& [key, value] : table)
        entries.push_back({std::string(key.str()), position(key.source()), convert(value)});
    return entries;
}

TomlNode convert(const toml::node& node) {
    TomlNode out;
    out.at = position(node.source());
    switch (node.type()) {
        case toml::node_type::boolean:
            out.value = node.as_boolean()->get();
            break;
        case toml::node_type::integer:
            out.value = node.as_integer()->get();
            break;
        case toml::node_type::floating_point:
            out.value = node.as_floating_point()->get();
            break;
        case toml::node_type::string:
            out.value = node.as_string()->get();
            break;
        case toml::node_type::table:
            out.value = convert(*node.as_table());
            break;
        case toml::node_type::array: {
            TomlArray elements;
            for (const toml::node& element : *node.as_array()) elements.push_back(convert(element));
            out.value = std::move(elements);
            break;
        }
        default:
            out.value = TomlDateTime{};
            break;
    }
    return out;
}

}  // namespace

std::string_view TomlNode::kind() const {
    static constexpr std::string_view kKinds[] = {"a boolean",      "an integer", "a number", "a string",
                                                  "a date or time", "an array",   "a table"};
    return kKinds[value.index()];
}

std::variant<TomlTable, TomlError> parse_toml(std::string_view text) {
    try {
        return convert(toml::parse(text, std::string_view{}));
    } catch (const toml::parse_error& error) {
        return TomlError{position(error.source()), std::string(error.description())};
    } catch (const std::exception& error) {
        return TomlError{{}, error.what()};
    }
}

std::string quote_toml(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
            static constexpr char kHex[] = "0123456789ABCDEF";
            out += "\\u00";
            out += kHex[static_cast<unsigned char>(c) >> 4];
            out += kHex[c & 15];
        } else {
            out += c;
        }
    }
    return out + '"';
}

}  // namespace pantheon::config

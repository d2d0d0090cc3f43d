// How a row's value is read, checked, written back and described: one overload a type of field.
#include <charconv>
#include <cmath>
#include <cstdio>

#include "runtime/config/nearest.h"
#include "runtime/config/schema.h"

namespace pantheon::config {
namespace {

template <class... F>
struct Overloaded : F... {
    using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

std::string number_text(double value) {
    if (value == std::floor(value) && std::abs(value) < 1e15) {
        char text[32];
        std::snprintf(text, sizeof text, "%.0f", value);
        return text;
    }
    char text[32];
    const auto end = std::to_chars(text, text + sizeof text, value).ptr;
    return {text, end};
}

/// A TOML float needs its point.
std::string real_text(double value) {
    std::string text = number_text(value);
    if (text.find_first_of(".en") == std::string::npos) text += ".0";
    return text;
}

void append_listed(std::string& list, std::string_view element) {
    if (!list.empty()) list += ", ";
    list += element;
}

std::string with_unit(std::string text, std::string_view unit) {
    if (!unit.empty()) text.append(" ").append(unit);
    return text;
}

std::string range_text(const KeyRow& row) {
    return with_unit(number_text(row.range->min) + " … " + number_text(row.range->max), row.unit);
}

Error wrong_type(std::string_view wanted, const TomlNode& node) {
    return {Code::invalid_argument, "want " + std::string(wanted) + ", got " + std::string(node.kind())};
}

Status check_range(const KeyRow& row, double value) {
    if (!row.range || (value >= row.range->min && value <= row.range->max)) return {};
    return Error(Code::invalid_argument, number_text(value) + " is out of range: " + range_text(row));
}

template <class T>
Status store_integer(const KeyRow& row, const TomlNode& node, T& target) {
    const auto* value = std::get_if<std::int64_t>(&node.value);
    if (value == nullptr) return wrong_type(row.apply_auto ? "an integer or \"auto\"" : "an integer", node);
    if (Status status = check_range(row, static_cast<double>(*value)); !status) return status;
    target = T(*value);
    return {};
}

Status store_real(const KeyRow& row, const TomlNode& node, std::optional<double>& target) {
    double value = 0;
    if (const auto* real = std::get_if<double>(&node.value))
        value = *real;
    else if (const auto* integer = std::get_if<std::int64_t>(&node.value))
        value = static_cast<double>(*integer);
    else
        return wrong_type(row.apply_auto ? "a number or \"auto\"" : "a number", node);
    if (!std::isfinite(value)) return Error(Code::invalid_argument, "is not finite");
    if (Status status = check_range(row, value); !status) return status;
    target = value;
    return {};
}

Status store_strings(const TomlNode& node, std::vector<std::string>& target) {
    const auto* elements = std::get_if<TomlArray>(&node.value);
    if (elements == nullptr) return wrong_type("an array of strings", node);
    std::vector<std::string> strings;
    for (const TomlNode& element : *elements) {
        const auto* text = std::get_if<std::string>(&element.value);
        if (text == nullptr)
            return wrong_type("a string", element).with_context("element " + std::to_string(strings.size()));
        strings.push_back(*text);
    }
    target = std::move(strings);
    return {};
}

std::string choice_list(const ChoiceField& field, bool only_available) {
    std::string text;
    for (const Choice& choice : field.choices) {
        if (only_available && !choice.is_available) continue;
        append_listed(text, quote_toml(choice.word));
    }
    return text;
}

Status store_choice(const TomlNode& node, const ChoiceField& field, Config& config) {
    const auto* word = std::get_if<std::string>(&node.value);
    if (word == nullptr) return wrong_type("one of " + choice_list(field, true), node);
    for (std::size_t i = 0; i < field.choices.size(); ++i) {
        if (field.choices[i].word != *word) continue;
        if (!field.choices[i].is_available)
            return Error(Code::unimplemented, quote_toml(*word) + " is not available in this version; want " +
                                                  choice_list(field, true));
        field.set(config, i);
        return {};
    }
    return Error(Code::invalid_argument, quote_toml(*word) + " is not one of " + choice_list(field, true));
}

Status store(const KeyRow& row, const TomlNode& node, Config& config, std::size_t engine) {
    return std::visit(Overloaded{
                          [&](Access<bool> access) -> Status {
                              const auto* value = std::get_if<bool>(&node.value);
                              if (value == nullptr) return wrong_type("a boolean", node);
                              access(config, engine) = *value;
                              return {};
                          },
                          [&](Access<std::string> access) -> Status {
                              const auto* value = std::get_if<std::string>(&node.value);
                              if (value == nullptr) return wrong_type("a string", node);
                              access(config, engine) = *value;
                              return {};
                          },
                          [&](Access<std::vector<std::string>> access) {
                              return store_strings(node, access(config, engine));
                          },
                          [&](Access<std::optional<double>> access) {
                              return store_real(row, node, access(config, engine));
                          },
                          [&](const ChoiceField& field) { return store_choice(node, field, config); },
                          [&](auto access) { return store_integer(row, node, access(config, engine)); },
                      },
                      row.field);
}

}  // namespace

Status apply_value(const KeyRow& row, const TomlNode& node, const HostDefaults& host, Config& config,
                   std::size_t engine) {
    const auto* word = std::get_if<std::string>(&node.value);
    const bool is_auto = row.apply_auto != nullptr && word != nullptr && *word == "auto";
    if (Status status = is_auto ? row.apply_auto(config, engine, host) : store(row, node, config, engine);
        !status)
        return status;
    return row.check != nullptr ? row.check(config, engine) : Status{};
}

std::string value_text(const KeyRow& row, const Config& config, std::size_t engine) {
    // Accessors only form a reference; nothing is written through it here.
    auto& readable = const_cast<Config&>(config);
    return std::visit(
        Overloaded{
            [&](Access<bool> access) -> std::string { return access(readable, engine) ? "true" : "false"; },
            [&](Access<std::int64_t> access) { return std::to_string(access(readable, engine)); },
            [&](Access<std::string> access) { return quote_toml(access(readable, engine)); },
            [&](Access<std::vector<std::string>> access) {
                std::string text;
                for (const std::string& element : access(readable, engine))
                    append_listed(text, quote_toml(element));
                return "[" + text + "]";
            },
            [&](Access<std::optional<std::int64_t>> access) -> std::string {
                const auto& value = access(readable, engine);
                return value ? std::to_string(*value) : "\"auto\"";
            },
            [&](Access<std::optional<double>> access) -> std::string {
                const auto& value = access(readable, engine);
                return value ? real_text(*value) : "\"auto\"";
            },
            [&](const ChoiceField& field) { return quote_toml(field.choices[field.get(config)].word); },
            [&](auto access) { return std::to_string(access(readable, engine).count()); },
        },
        row.field);
}

std::string value_description(const KeyRow& row) {
    std::string text =
        std::visit(Overloaded{
                       [&](Access<bool>) -> std::string { return "true or false"; },
                       [&](Access<std::string>) -> std::string { return "a string"; },
                       [&](Access<std::vector<std::string>>) -> std::string { return "an array of strings"; },
                       [&](Access<std::optional<double>>) -> std::string { return "a number"; },
                       [&](const ChoiceField& field) { return "one of " + choice_list(field, true); },
                       [&](auto) -> std::string { return "an integer"; },
                   },
                   row.field);
    if (row.range) text += ", " + range_text(row);
    if (row.apply_auto != nullptr) text += ", or \"auto\"";
    return text;
}

}  // namespace pantheon::config

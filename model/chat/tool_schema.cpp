#include "model/chat/tool_schema.h"

#include <nlohmann/json.hpp>
#include <string>

#include "model/chat/bounded_json.h"
#include "model/chat/python_text.h"

namespace pantheon::model {
namespace {

std::string key_of(std::string_view function, std::string_view parameter) {
    std::string key(function);
    key += '\0';
    return key += parameter;
}

const Json* member(const Json& value, const char* key) {
    if (!value.is_object()) return nullptr;
    const auto it = value.find(key);
    return it == value.end() ? nullptr : &*it;
}

/// Collects what a schema allows: its `type`, the types of its `enum` or `const`, those of its alternatives.
void collect_types(const Json& schema, bool& allows_string, bool& allows_null, int depth) {
    if (depth > kMaxJsonDepth) return;
    const auto note_name = [&](const Json& name) {
        if (name == "string") allows_string = true;
        if (name == "null") allows_null = true;
    };
    const auto note_value = [&](const Json& value) {
        if (value.is_string()) allows_string = true;
        if (value.is_null()) allows_null = true;
    };
    const Json* type = member(schema, "type");
    if (type != nullptr && type->is_array())
        for (const Json& name : *type) note_name(name);
    else if (type != nullptr)
        note_name(*type);
    if (type == nullptr) {
        if (const Json* values = member(schema, "enum"); values != nullptr && values->is_array())
            for (const Json& value : *values) note_value(value);
        if (const Json* value = member(schema, "const")) note_value(*value);
    }
    for (const char* key : {"anyOf", "oneOf", "allOf"})
        if (const Json* alternatives = member(schema, key);
            alternatives != nullptr && alternatives->is_array())
            for (const Json& alternative : *alternatives)
                collect_types(alternative, allows_string, allows_null, depth + 1);
}

}  // namespace

ToolSchemas::ToolSchemas(std::string_view tools_json) {
    const Json tools = Json::parse(tools_json, nullptr, /*allow_exceptions=*/false);
    if (!tools.is_array()) return;
    for (const Json& tool : tools) {
        const Json* function = member(tool, "function");
        if (function == nullptr) function = &tool;
        const Json* name = member(*function, "name");
        const Json* parameters = member(*function, "parameters");
        const Json* properties = parameters == nullptr ? nullptr : member(*parameters, "properties");
        if (name == nullptr || !name->is_string() || properties == nullptr || !properties->is_object())
            continue;
        for (const auto& [key, schema] : properties->items()) {
            Type type;
            collect_types(schema, type.allows_string, type.allows_null, 0);
            types_.emplace(key_of(name->get_ref<const std::string&>(), key), type);
        }
    }
}

std::string ToolSchemas::to_json(std::string_view function, std::string_view parameter,
                                 std::string_view text) const {
    const auto it = types_.find(key_of(function, parameter));
    const Type type = it == types_.end() ? Type{} : it->second;
    const std::string_view word = trim(text);
    const bool is_null = word == "None" || word == "null";
    if (type.allows_string) return type.allows_null && is_null ? "null" : quote_json(text);
    if (is_null) return "null";
    if (word == "True") return "true";
    if (word == "False") return "false";
    // The text itself is kept: a number keeps its digits, an object its keys' order.
    return parse_bounded_json(word) ? std::string(word) : quote_json(text);
}

std::string quote_json(std::string_view text) {
    return Json(std::string(text)).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace pantheon::model

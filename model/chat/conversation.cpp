#include "model/chat/conversation.h"

#include <nlohmann/json.hpp>

#include "model/chat/bounded_json.h"
#include "model/chat/python_text.h"
#include "model/tokenizer/utf8.h"

namespace pantheon::model {
namespace {

Error invalid(const std::string& where, const std::string& message) {
    return Error(Code::invalid_argument, where + ": " + message);
}

std::string element(const std::string& where, std::size_t i) {
    return where + "[" + std::to_string(i) + "]";
}

/// The member, or nothing when it is absent or null.
const Json* member(const Json& object, const char* key) {
    const auto it = object.find(key);
    return it == object.end() || it->is_null() ? nullptr : &*it;
}

Result<std::string> read_text(const Json& value, const std::string& where) {
    if (!value.is_string()) return invalid(where, "must be a string");
    const auto& text = value.get_ref<const std::string&>();
    if (!is_valid_utf8(text)) return invalid(where, "is not valid UTF-8");
    return text;
}

Result<Role> read_role(const Json& message, const std::string& where) {
    const Json* value = member(message, "role");
    if (value == nullptr) return invalid(where, "missing");
    auto name = read_text(*value, where);
    if (!name) return std::move(name).error();
    if (*name == "system" || *name == "developer") return Role::system;
    if (*name == "user") return Role::user;
    if (*name == "assistant") return Role::assistant;
    if (*name == "tool") return Role::tool;
    const std::string_view shown = clip_utf8(*name, 40);
    return invalid(where, "\"" + std::string(shown) +
                              "\" is unknown, accepted: system, developer, user, assistant, "
                              "tool");
}

/// The same order of questions as the template asks.
Result<std::string> read_part(const Json& part, const std::string& where) {
    if (!part.is_object()) return invalid(where, "must be an object");
    const Json* type = member(part, "type");
    const auto is_type = [&](const char* name) { return type != nullptr && *type == name; };
    for (const char* kind : {"image", "video"})
        if (part.contains(kind) || part.contains(std::string(kind) + "_url") || is_type(kind) ||
            is_type((std::string(kind) + "_url").c_str()))
            return Error(Code::unimplemented, where + ": " + kind + " parts are not supported, only text is");
    const Json* text = member(part, "text");
    if (text == nullptr) return invalid(where, "a part needs a text");
    return read_text(*text, where + ".text");
}

Result<std::string> read_content(const Json& message, const std::string& where) {
    const Json* content = member(message, "content");
    if (content == nullptr) return std::string();
    if (content->is_string()) return read_text(*content, where);
    if (!content->is_array()) return invalid(where, "must be a string, null or an array of parts");
    std::string joined;
    std::size_t i = 0;
    for (const Json& part : *content) {
        auto text = read_part(part, element(where, i++));
        if (!text) return std::move(text).error();
        joined += *text;
    }
    return joined;
}

Result<std::shared_ptr<const Json>> read_arguments(const Json& value, const std::string& where) {
    using Pointer = std::shared_ptr<const Json>;
    if (value.is_object()) return Pointer(Pointer(), &value);  // not owned, so that a deep tree is not copied
    if (!value.is_string()) return invalid(where, "must be an object or a string of JSON");
    const auto& text = value.get_ref<const std::string&>();
    if (trim(text).empty()) return Pointer(std::make_shared<Json>(Json::object()));  // some clients' "none"
    std::optional<Json> parsed = parse_bounded_json(text);
    if (!parsed || !parsed->is_object())
        return invalid(where, "the string is not a JSON object (at most " + std::to_string(kMaxJsonDepth) +
                                  " deep, " + std::to_string(kMaxJsonKeys) + " keys each)");
    return Pointer(std::make_shared<Json>(*std::move(parsed)));
}

Result<MessageCall> read_call(const Json& value, std::string where) {
    if (!value.is_object()) return invalid(where, "must be an object");
    const Json* function = &value;
    if (const Json* inner = member(value, "function")) {
        where += ".function";
        if (!inner->is_object()) return invalid(where, "must be an object");
        function = inner;
    }
    const Json* name = member(*function, "name");
    if (name == nullptr) return invalid(where + ".name", "missing");
    auto text = read_text(*name, where + ".name");
    if (!text) return std::move(text).error();
    if (text->empty()) return invalid(where + ".name", "is empty");
    MessageCall call{*std::move(text), std::make_shared<Json>(Json::object())};
    if (const Json* arguments = member(*function, "arguments")) {
        auto read = read_arguments(*arguments, where + ".arguments");
        if (!read) return std::move(read).error();
        call.arguments = *std::move(read);
    }
    return call;
}

Status read_calls(const Json& message, const std::string& where, std::vector<MessageCall>& calls) {
    const Json* list = member(message, "tool_calls");
    if (list == nullptr) return {};
    if (!list->is_array()) return invalid(where, "must be an array");
    for (const Json& value : *list) {
        auto call = read_call(value, element(where, calls.size()));
        if (!call) return std::move(call).error();
        calls.push_back(*std::move(call));
    }
    return {};
}

Result<Message> read_message(const Json& value, const std::string& where) {
    if (!value.is_object()) return invalid(where, "must be an object");
    auto role = read_role(value, where + ".role");
    if (!role) return std::move(role).error();
    auto content = read_content(value, where + ".content");
    if (!content) return std::move(content).error();
    Message message;
    message.role = *role;
    message.content = trim(*content);
    if (message.role != Role::assistant) return message;
    if (const Json* reasoning = member(value, "reasoning_content")) {
        auto text = read_text(*reasoning, where + ".reasoning_content");
        if (!text) return std::move(text).error();
        message.reasoning = *std::move(text);
    }
    if (Status s = read_calls(value, where + ".tool_calls", message.calls); !s) return std::move(s).error();
    return message;
}

bool is_query(const Message& message) {
    const std::string_view text = message.content;
    return message.role == Role::user &&
           !(text.starts_with("<tool_response>") && text.ends_with("</tool_response>"));
}

Status read_tools(const Json& tools, std::vector<std::string>& lines) {
    if (tools.is_null()) return {};
    if (!tools.is_array()) return invalid("tools", "must be an array");
    for (const Json& tool : tools) {
        const std::string where = element("tools", lines.size());
        if (!tool.is_object()) return invalid(where, "must be an object");
        auto line = python_json(tool);
        if (!line) return std::move(line).error().with_context(where);
        lines.push_back(*std::move(line));
    }
    return {};
}

}  // namespace

Result<Conversation> read_conversation(const Json& messages, const Json& tools) {
    if (!messages.is_array()) return invalid("messages", "must be an array");
    if (messages.empty()) return invalid("messages", "is empty");
    Conversation result;
    result.messages.reserve(messages.size());
    for (const Json& value : messages) {
        const std::size_t i = result.messages.size();
        const std::string where = element("messages", i);
        auto message = read_message(value, where);
        if (!message) return std::move(message).error();
        if (message->role == Role::system && i != 0)
            return invalid(where + ".role", "a system message must be the first");
        result.messages.push_back(*std::move(message));
    }
    std::size_t n_left = result.messages.size();
    while (n_left > 0 && !is_query(result.messages[n_left - 1])) --n_left;
    if (n_left == 0) return invalid("messages", "there is no user message that asks something");
    result.last_query = n_left - 1;
    if (Status s = read_tools(tools, result.tools); !s) return std::move(s).error();
    return result;
}

}  // namespace pantheon::model

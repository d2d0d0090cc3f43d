// A request's messages, checked and in the terms of the template: what is to be rendered, and nothing else.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/status.h"

namespace pantheon::model {

enum class Role { system, user, assistant, tool };

struct MessageCall {
    std::string name;
    std::shared_ptr<const Json> arguments;  // an object; the request's own, or parsed from its string
};

struct Message {
    Role role = Role::user;
    std::string content;                   // parts joined, trimmed
    std::optional<std::string> reasoning;  // reasoning_content, as given
    std::vector<MessageCall> calls;
};

struct Conversation {
    std::vector<Message> messages;   // only the first may be a system message; one is a user's query
    std::size_t last_query = 0;      // the last user message that is no wrapped tool response
    std::vector<std::string> tools;  // each as one line of JSON
};

/// `messages` must outlive the result. invalid_argument, and unimplemented for what is understood but not
/// text, name the place: "messages[2].role: …", "messages[0].content[1]: …", "tools[0]: …".
Result<Conversation> read_conversation(const Json& messages, const Json& tools);

}  // namespace pantheon::model

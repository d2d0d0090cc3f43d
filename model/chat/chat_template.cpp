#include "model/chat/chat_template.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "model/chat/conversation.h"
#include "model/chat/python_text.h"
#include "runtime/base/utf8.h"

namespace pantheon::model {
namespace {

constexpr std::string_view kToolsHead = "# Tools\n\nYou have access to the following functions:\n\n<tools>";
constexpr std::string_view kToolsTail =
    "\n</tools>\n\n"
    "If you choose to call a function ONLY reply in the following format with NO suffix:\n\n"
    "<tool_call>\n<function=example_function_name>\n<parameter=example_parameter_1>\nvalue_1\n</parameter>\n"
    "<parameter=example_parameter_2>\nThis is the value for the second parameter\nthat can span\nmultiple "
    "lines\n"
    "</parameter>\n</function>\n</tool_call>\n\n"
    "<IMPORTANT>\nReminder:\n"
    "- Function calls MUST follow the specified format: an inner <function=...></function> block must be "
    "nested "
    "within <tool_call></tool_call> XML tags\n"
    "- Required parameters MUST be specified\n"
    "- You may provide optional reasoning for your function call in natural language BEFORE the function "
    "call, but "
    "NOT after\n"
    "- If there is no function call available, answer the question like normal with your current knowledge "
    "and do "
    "not tell the user about function calls\n"
    "</IMPORTANT>";

/// The prompt under construction. What the template writes and what it was given go through different
/// functions, so that no text of a client's can end up in a trusted range.
class PromptWriter {
  public:
    void own(std::string_view text) {
        if (text.empty()) return;
        const std::size_t begin = prompt_.text.size();
        prompt_.text += text;
        if (!prompt_.trusted.empty() && prompt_.trusted.back().end == begin)
            prompt_.trusted.back().end = prompt_.text.size();
        else
            prompt_.trusted.push_back({begin, prompt_.text.size()});
    }
    void given(std::string_view text) { prompt_.text += text; }
    RenderedPrompt take() { return std::move(prompt_); }

  private:
    RenderedPrompt prompt_;
};

/// An assistant turn's two texts.
struct Turn {
    std::string_view reasoning;
    std::string_view content;
};

/// A client's name in an error message.
std::string shown(std::string_view name) {
    return std::string(clip_utf8(name, 40));
}

void strip_leading_newlines(std::string_view& text) {
    text.remove_prefix(std::min(text.find_first_not_of('\n'), text.size()));
}

/// Reasoning that a client left inside the content is taken out as the template does: from the last <think>
/// before the first </think>; the content is what follows the last </think>.
Turn split_turn(const Message& message) {
    constexpr std::string_view kOpen = "<think>";
    constexpr std::string_view kClose = "</think>";
    Turn turn{message.reasoning ? std::string_view(*message.reasoning) : std::string_view(), message.content};
    const std::size_t close = message.reasoning ? std::string_view::npos : turn.content.find(kClose);
    if (close != std::string_view::npos) {
        turn.reasoning = turn.content.substr(0, close);
        const std::size_t open = turn.reasoning.rfind(kOpen);
        if (open != std::string_view::npos) turn.reasoning.remove_prefix(open + kOpen.size());
        turn.content.remove_prefix(turn.content.rfind(kClose) + kClose.size());
        strip_leading_newlines(turn.content);
    }
    turn.reasoning = trim(turn.reasoning);
    return turn;
}

class Renderer {
  public:
    Renderer(const Conversation& conversation, const TemplateOptions& options)
        : conversation_(conversation), options_(options) {}

    Result<RenderedPrompt> render() {
        write_head();
        for (std::size_t i = 0; i < conversation_.messages.size(); ++i)
            if (Status s = write_message(i); !s)
                return std::move(s).error().with_context("messages[" + std::to_string(i) + "]");
        const bool is_thinking = options_.thinking.value_or(options_.family != TemplateFamily::qwen35_small);
        if (options_.add_generation_prompt)
            out_.own(is_thinking ? "<|im_start|>assistant\n<think>\n"
                                 : "<|im_start|>assistant\n<think>\n\n</think>\n\n");
        RenderedPrompt prompt = out_.take();
        prompt.starts_in_reasoning = options_.add_generation_prompt && is_thinking;
        return prompt;
    }

  private:
    const Message* message_at(std::size_t i) const {
        return i < conversation_.messages.size() ? &conversation_.messages[i] : nullptr;
    }
    bool is_tool(std::size_t i) const {
        const Message* m = message_at(i);
        return m != nullptr && m->role == Role::tool;
    }

    /// The system turn: the tools, then the system message.
    void write_head() {
        const Message& first = conversation_.messages.front();
        const bool has_system = first.role == Role::system;
        if (!has_system && conversation_.tools.empty()) return;
        out_.own("<|im_start|>system\n");
        if (!conversation_.tools.empty()) {
            out_.own(kToolsHead);
            for (const std::string& line : conversation_.tools) {
                out_.own("\n");
                out_.given(line);
            }
            out_.own(kToolsTail);
            if (has_system && !first.content.empty()) out_.own("\n\n");
        }
        if (has_system) out_.given(first.content);
        out_.own("<|im_end|>\n");
    }

    Status write_message(std::size_t i) {
        const Message& message = conversation_.messages[i];
        switch (message.role) {
            case Role::system:
                return {};
            case Role::user:
                out_.own("<|im_start|>user\n");
                out_.given(message.content);
                out_.own("<|im_end|>\n");
                return {};
            case Role::assistant:
                return write_assistant(message, i);
            case Role::tool:
                write_tool(message, i);
                return {};
        }
        return {};
    }

    Status write_assistant(const Message& message, std::size_t i) {
        const Turn turn = split_turn(message);
        const bool keeps_reasoning =
            i > conversation_.last_query ||
            (options_.family == TemplateFamily::qwen36 && options_.preserve_thinking);
        out_.own("<|im_start|>assistant\n");
        if (keeps_reasoning) {
            out_.own("<think>\n");
            out_.given(turn.reasoning);
            out_.own("\n</think>\n\n");
        }
        out_.given(turn.content);
        bool is_first = true;
        for (const MessageCall& call : message.calls) {
            if (!is_first)
                out_.own("\n");
            else if (!trim(turn.content).empty())
                out_.own("\n\n");
            is_first = false;
            if (Status s = write_call(call); !s) return s;
        }
        out_.own("<|im_end|>\n");
        return {};
    }

    Status write_call(const MessageCall& call) {
        out_.own("<tool_call>\n<function=");
        out_.given(call.name);
        out_.own(">\n");
        for (const auto& [key, value] : call.arguments->items()) {
            auto name = python_str(Json(key));
            auto text = python_argument(value);
            if (!name) return std::move(name).error().with_context(shown(call.name) + ": an argument's name");
            if (!text)
                return std::move(text).error().with_context(shown(call.name) + ": argument " + shown(key));
            out_.own("<parameter=");
            out_.given(*name);
            out_.own(">\n");
            out_.given(*text);
            out_.own("\n</parameter>\n");
        }
        out_.own("</function>\n</tool_call>");
        return {};
    }

    Result<std::string> python_argument(const Json& value) const {
        if (value.is_string() || options_.family != TemplateFamily::qwen36) return python_str(value);
        return python_json(value);
    }

    /// Consecutive tool messages share one user turn. (The template opens none before the very first
    /// message.)
    void write_tool(const Message& message, std::size_t i) {
        if (i > 0 && !is_tool(i - 1)) out_.own("<|im_start|>user");
        out_.own("\n<tool_response>\n");
        out_.given(message.content);
        out_.own("\n</tool_response>");
        if (!is_tool(i + 1)) out_.own("<|im_end|>\n");
    }

    const Conversation& conversation_;
    const TemplateOptions& options_;
    PromptWriter out_;
};

}  // namespace

TemplateChoice choose_template(std::string_view jinja_source) {
    const auto has = [&](std::string_view text) { return jinja_source.find(text) != std::string_view::npos; };
    if (has("preserve_thinking")) return {TemplateFamily::qwen36, true};
    if (has("enable_thinking is true")) return {TemplateFamily::qwen35_small, true};
    return {TemplateFamily::qwen35, has("enable_thinking") && has("<function=")};
}

Result<RenderedPrompt> render_chat(const Json& messages, const Json& tools, const TemplateOptions& options) {
    auto conversation = read_conversation(messages, tools);
    if (!conversation) return std::move(conversation).error();
    return Renderer(*conversation, options).render();
}

}  // namespace pantheon::model

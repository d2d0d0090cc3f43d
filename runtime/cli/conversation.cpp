#include "runtime/cli/conversation.h"

#include <algorithm>
#include <cstdio>

#include "runtime/cli/utf8_repair.h"
#include "runtime/config/nearest.h"

namespace pantheon::cli {
namespace {

constexpr std::string_view kHelp =
    R"(/think on|off    reason before answering, or not; /think alone leaves it to the model
/system TEXT     instructions for the model; /system alone takes them away
/clear           forget the conversation, keep the instructions
/stats           tokens and times of the last answer and of all
/help            this
/quit            leave; so does Ctrl-D
A line that ends with a backslash goes on in the next one; """ opens and closes a text of several lines.
//TEXT sends a text that begins with a slash.
Ctrl-C cancels an answer, at an empty prompt it leaves.
)";

std::string format_ms(double ms) {
    char text[32];
    std::snprintf(text, sizeof text, ms < 10000 ? "%.0f ms" : "%.1f s", ms < 10000 ? ms : ms / 1000);
    return text;
}

}  // namespace

Conversation::Conversation(const ChatOptions& options)
    : options_(options), system_(repair_utf8(options.system)) {
    if (options.no_thinking) thinking_ = false;
}

ChatAction Conversation::take(const std::string& input) {
    if (input.find_first_not_of(" \t\n") == std::string::npos) return ShowText{};
    if (input.starts_with("//")) return SendLine{input.substr(1)};
    if (!input.starts_with('/')) return SendLine{input};
    const std::size_t space = input.find_first_of(" \t\n");
    const std::string_view whole = input;
    std::string_view rest = space == std::string::npos ? std::string_view{} : whole.substr(space);
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t\n"), rest.size()));
    rest = rest.substr(0, rest.find_last_not_of(" \t\n") + 1);
    return command(whole.substr(1, space == std::string::npos ? space : space - 1), rest);
}

ChatAction Conversation::command(std::string_view name, std::string_view rest) {
    if (name == "think") {
        if (rest == "on")
            thinking_ = true;
        else if (rest == "off")
            thinking_ = false;
        else if (rest.empty())
            thinking_.reset();
        else
            return ShowText{"/think takes on or off\n"};
        return ShowText{!thinking_   ? "thinking: as the model does by itself\n"
                        : *thinking_ ? "thinking: on\n"
                                     : "thinking: off\n"};
    }
    if (name == "system") {
        system_ = repair_utf8(std::string(rest));
        return ShowText{system_.empty() ? "no instructions\n" : "instructions are set\n"};
    }
    if (name == "clear") {
        messages_ = Json::array();
        return ShowText{"the conversation is forgotten\n"};
    }
    if (name == "stats") return ShowText{stats()};
    if (name == "help") return ShowText{std::string(kHelp)};
    if (name == "quit" || name == "exit") return LeaveChat{};
    static constexpr std::string_view kNames[] = {"think", "system", "clear", "stats", "help", "quit"};
    return ShowText{"unknown command /" + std::string(name) + "; the nearest one is /" +
                    std::string(config::nearest_name(name, kNames)) + ", and //" + std::string(name) +
                    " would send it\n"};
}

GenerateRequest Conversation::ask(const std::string& text) {
    messages_.push_back(Json{{"role", "user"}, {"content", repair_utf8(text)}});
    Json all = Json::array();
    if (!system_.empty()) all.push_back(Json{{"role", "system"}, {"content", system_}});
    for (const Json& message : messages_) all.push_back(message);
    GenerateRequest request;
    request.input = std::move(all);
    request.thinking = thinking_;
    request.thinking_budget = options_.thinking_budget;
    request.max_tokens = options_.max_tokens;
    request.sampling.temperature = options_.temperature;
    return request;
}

void Conversation::answer(const DoneEvent& done) {
    last_ = done;
    ++n_answers_;
    n_prompt_tokens_ += done.usage.prompt_tokens;
    n_completion_tokens_ += done.usage.completion_tokens;
    if (done.text.empty()) return take_back();
    Json message{{"role", "assistant"}, {"content", done.text}};
    if (!done.reasoning.empty()) message["reasoning_content"] = done.reasoning;
    messages_.push_back(std::move(message));
}

void Conversation::take_back() {
    messages_.erase(messages_.size() - 1);
}

std::string Conversation::stats() const {
    if (!last_) return "nothing has been answered yet\n";
    const Usage& usage = last_->usage;
    const Timings& timings = last_->timings;
    std::string text = "last answer: " + std::to_string(usage.prompt_tokens) + " prompt tokens (" +
                       std::to_string(usage.cached_tokens) + " cached), " +
                       std::to_string(usage.completion_tokens) + " generated (" +
                       std::to_string(usage.reasoning_tokens) + " reasoning)\n";
    text += "             first token after " + format_ms(timings.first_token_ms) + " (queue " +
            format_ms(timings.queue_ms) + ", prompt " + format_ms(timings.prefill_ms) + ")";
    // The first token comes with the prompt.
    if (timings.decode_ms > 0 && usage.completion_tokens > 1) {
        char speed[48];
        std::snprintf(speed, sizeof speed, ", then %.1f tokens/s",
                      1000.0 * static_cast<double>(usage.completion_tokens - 1) / timings.decode_ms);
        text += speed;
    }
    text += "\nall " + std::to_string(n_answers_) + " answers: " + std::to_string(n_prompt_tokens_) +
            " prompt tokens, " + std::to_string(n_completion_tokens_) + " generated\n";
    return text;
}

}  // namespace pantheon::cli

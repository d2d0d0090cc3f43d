// The state of a chat and its slash commands, without terminal and daemon.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "actors/client_messages.h"
#include "runtime/cli/options.h"

namespace pantheon::cli {

// What a line asks for.
struct SendLine {
    std::string text;
};
struct ShowText {
    std::string text;  // for people, ends with a newline
};
struct LeaveChat {};
using ChatAction = std::variant<SendLine, ShowText, LeaveChat>;

class Conversation {
  public:
    explicit Conversation(const ChatOptions& options);

    /// A whole input: "/command", "//text" for text that begins with a slash, or text to send.
    ChatAction take(const std::string& input);

    /// The request for the conversation with this text as the user's next words.
    GenerateRequest ask(const std::string& text);
    /// What came of it: the answer joins the conversation. Without any content the question is taken back.
    void answer(const DoneEvent& done);
    /// The request failed: as if it had not been asked.
    void take_back();

    std::string stats() const;

  private:
    ChatAction command(std::string_view name, std::string_view rest);

    ChatOptions options_;
    std::string system_;
    std::optional<bool> thinking_;
    Json messages_ = Json::array();  // without the system message
    std::optional<DoneEvent> last_;
    std::int64_t n_answers_ = 0;
    std::int64_t n_prompt_tokens_ = 0, n_completion_tokens_ = 0;
};

}  // namespace pantheon::cli

// `chat`: a conversation in the terminal.
#include <optional>

#include "runtime/cli/commands.h"
#include "runtime/cli/console.h"
#include "runtime/cli/conversation.h"
#include "runtime/cli/daemon_call.h"
#include "runtime/cli/line_editor.h"
#include "runtime/cli/stream_printer.h"

namespace pantheon::cli {
namespace {

class Chat {
  public:
    Chat(const ChatOptions& options, const std::string& endpoint)
        : endpoint_(endpoint), conversation_(options) {}

    int run() {
        auto reached = reach_daemon(endpoint_);
        if (const int* code = std::get_if<int>(&reached)) return *code;
        client_.emplace(std::get<ipc::Client>(std::move(reached)));
        LineEditor editor(chat_history_file());
        if (is_err_terminal())
            write_err("connected to " + client_->endpoint() + "; /help says what is there\n");
        for (;;) {
            handle_interrupts(OnInterrupt::only_raise_flag);
            const LineEditor::Line line = editor.read_input();
            clear_interrupt();
            if (line.outcome == LineEditor::Outcome::end) return kDone;
            if (line.outcome == LineEditor::Outcome::interrupted) {
                if (line.is_empty) return kInterrupted;
                continue;
            }
            const ChatAction action = conversation_.take(line.text);
            if (std::holds_alternative<LeaveChat>(action)) return kDone;
            if (const auto* shown = std::get_if<ShowText>(&action)) {
                write_err(shown->text);
                continue;
            }
            if (const auto leave = ask(std::get<SendLine>(action).text)) return *leave;
            clear_interrupt();  // it was for the answer
        }
    }

  private:
    /// One question and its answer. An exit code when the chat is over.
    std::optional<int> ask(const std::string& text) {
        if (!client_) {  // the connection broke before
            auto reached = reach_daemon(endpoint_);
            if (std::holds_alternative<int>(reached)) return std::nullopt;  // said; the next line tries again
            client_.emplace(std::get<ipc::Client>(std::move(reached)));
        }
        handle_interrupts(OnInterrupt::raise_flag);  // a second Ctrl-C leaves at once
        StreamPrinter printer;
        auto last = client_->generate(
            conversation_.ask(text),
            [&](const Event& event) {
                if (const auto* token = std::get_if<TokenEvent>(&event)) printer.print(*token);
                if (const auto* progress = std::get_if<ProgressEvent>(&event)) printer.print(*progress);
            },
            &interrupted());
        const bool is_written = printer.finish();
        if (!last) {
            report_failure(last.error());
            conversation_.take_back();
            if (ipc::is_unreachable(last.error())) client_.reset();
            return std::nullopt;
        }
        if (const auto* refusal = std::get_if<ErrorEvent>(&*last)) {
            report_refusal(*refusal);
            conversation_.take_back();
            return std::nullopt;
        }
        const auto& done = std::get<DoneEvent>(*last);
        if (done.finish == "cancelled" && !done.error)
            write_err("(cancelled)\n");
        else if (done.error)
            complain(done.error->to_string());
        else if (done.finish == "length")
            write_err("(cut off: the token limit was reached)\n");
        conversation_.answer(done);
        if (!is_written) {
            complain("standard output cannot be written");
            return kRefused;
        }
        return std::nullopt;
    }

    std::string endpoint_;
    Conversation conversation_;
    std::optional<ipc::Client> client_;
};

}  // namespace

int run_chat(const ChatOptions& options, const std::string& endpoint) {
    return Chat(options, endpoint).run();
}

}  // namespace pantheon::cli

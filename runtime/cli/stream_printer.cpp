#include "runtime/cli/stream_printer.h"

#include "runtime/cli/console.h"

namespace pantheon::cli {
namespace {

constexpr std::string_view kDim = "\x1b[2m";
constexpr std::string_view kPlain = "\x1b[0m";
constexpr std::string_view kClearLine = "\r\x1b[K";

}  // namespace

std::string progress_text(const ProgressEvent& event) {
    if (event.phase == "queued") return "waiting for a free slot";
    if (event.phase == "parked") return "parked: the daemon is short of memory";
    return "reading the prompt: " + std::to_string(event.done) + " of " + std::to_string(event.total) +
           " tokens";
}

void StreamPrinter::print(const TokenEvent& event) {
    clear_progress();
    if (event.text.empty()) return;
    if (event.kind == "content") {
        end_aside();
        is_out_written_ = write_out(event.text) && is_out_written_;
        ends_with_newline_ = event.text.back() == '\n';
        has_content_ = true;
        return;
    }
    // Dim and plain go around each piece, so that a Ctrl-C leaves the terminal as it was.
    write_err(is_err_terminal() ? std::string(kDim) + event.text + std::string(kPlain) : event.text);
    is_in_aside_ = true;
    aside_ends_with_newline_ = event.text.back() == '\n';
}

void StreamPrinter::print(const ProgressEvent& event) {
    // In the middle of a text there is no line to use.
    if (!is_err_terminal() || is_in_aside_ || has_content_) return;
    write_err(std::string(kClearLine) + std::string(kDim) + progress_text(event) + std::string(kPlain));
    has_progress_line_ = true;
}

bool StreamPrinter::finish() {
    clear_progress();
    end_aside();
    if (has_content_ && !ends_with_newline_ && is_out_terminal())
        is_out_written_ = write_out("\n") && is_out_written_;
    return is_out_written_;
}

void StreamPrinter::end_aside() {
    if (is_in_aside_ && !aside_ends_with_newline_) write_err("\n");
    is_in_aside_ = false;
}

void StreamPrinter::clear_progress() {
    if (has_progress_line_) write_err(kClearLine);
    has_progress_line_ = false;
}

}  // namespace pantheon::cli

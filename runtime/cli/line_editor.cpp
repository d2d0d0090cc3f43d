#include "runtime/cli/line_editor.h"

#include <histedit.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "runtime/cli/console.h"

namespace pantheon::cli {
namespace {

constexpr const char* kPrompt = "> ";
constexpr const char* kMorePrompt = "| ";
constexpr std::string_view kBlockMark = "\"\"\"";
constexpr int kHistoryLines = 1000;
constexpr int kPollMs = 250;  // a Ctrl-C that comes just before the wait is noticed after this

enum class ByteOutcome { byte, end, interrupted };

ByteOutcome read_byte(unsigned char& byte) {
    for (;;) {
        if (interrupted()) return ByteOutcome::interrupted;
        pollfd in{STDIN_FILENO, POLLIN, 0};
        const int ready = ::poll(&in, 1, kPollMs);
        if (ready < 0 && errno != EINTR) return ByteOutcome::end;
        if (ready <= 0) continue;
        const ssize_t n = ::read(STDIN_FILENO, &byte, 1);
        if (n == 1) return ByteOutcome::byte;
        if (n == 0 || errno != EINTR) return ByteOutcome::end;
    }
}

int n_more_bytes(unsigned char first) {
    return first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : first >= 0xC0 ? 1 : 0;
}

}  // namespace

struct LineEditor::Impl {
    EditLine* editor = nullptr;  // null: no terminal
    History* history = nullptr;
    std::string history_file;
    const char* prompt = kPrompt;
    bool was_interrupted = false;

    static Impl& of(EditLine* editor) {
        void* data = nullptr;
        el_get(editor, EL_CLIENTDATA, &data);
        return *static_cast<Impl*>(data);
    }

    static char* show_prompt(EditLine* editor) { return const_cast<char*>(of(editor).prompt); }

    /// One character, so that a Ctrl-C ends the wait; the library's own reader goes on after it.
    static int get_character(EditLine* editor, wchar_t* out) {
        unsigned char byte = 0;
        const ByteOutcome outcome = read_byte(byte);
        if (outcome != ByteOutcome::byte) {
            of(editor).was_interrupted = outcome == ByteOutcome::interrupted;
            return 0;
        }
        const int n_more = n_more_bytes(byte);
        auto code = static_cast<std::uint32_t>(n_more == 0 ? byte : byte & (0x3F >> n_more));
        for (int i = 0; i < n_more; ++i) {
            if (read_byte(byte) != ByteOutcome::byte) return 0;
            code = (code << 6) | (byte & 0x3FU);
        }
        *out = static_cast<wchar_t>(code);
        return 1;
    }
};

LineEditor::LineEditor(const std::string& history_file) : impl_(std::make_unique<Impl>()) {
    if (::isatty(STDIN_FILENO) != 1 || !is_out_terminal()) return;
    // The library works in the locale's characters; without one it would refuse what is not ASCII.
    if (std::setlocale(LC_CTYPE, "") == nullptr || MB_CUR_MAX == 1) std::setlocale(LC_CTYPE, "C.UTF-8");
    Impl& impl = *impl_;
    impl.editor = el_init("pantheon", stdin, stdout, stderr);
    if (impl.editor == nullptr) return;
    el_set(impl.editor, EL_CLIENTDATA, impl_.get());
    el_set(impl.editor, EL_PROMPT, &Impl::show_prompt);
    el_set(impl.editor, EL_EDITOR, "emacs");
    el_set(impl.editor, EL_SIGNAL, 0);
    el_set(impl.editor, EL_GETCFN, &Impl::get_character);
    el_set(impl.editor, EL_BIND, "^R", "em-inc-search-prev", nullptr);
    impl.history = history_init();
    HistEvent event{};
    history(impl.history, &event, H_SETSIZE, kHistoryLines);
    history(impl.history, &event, H_SETUNIQUE, 1);
    el_set(impl.editor, EL_HIST, history, impl.history);
    impl.history_file = history_file;
    if (!history_file.empty()) history(impl.history, &event, H_LOAD, history_file.c_str());
}

LineEditor::~LineEditor() {
    if (impl_->history != nullptr) {
        HistEvent event{};
        if (!impl_->history_file.empty()) {
            const mode_t before = ::umask(0077);  // what was asked is nobody else's business
            history(impl_->history, &event, H_SAVE, impl_->history_file.c_str());
            ::umask(before);
        }
        history_end(impl_->history);
    }
    if (impl_->editor != nullptr) el_end(impl_->editor);
}

LineEditor::Line LineEditor::read_line(const char* prompt) {
    Line line;
    if (impl_->editor == nullptr) {
        unsigned char byte = 0;
        for (;;) {
            const ByteOutcome outcome = read_byte(byte);
            if (outcome == ByteOutcome::interrupted) {
                line.outcome = Outcome::interrupted;
                line.is_empty = line.text.empty();
                return line;
            }
            if (outcome == ByteOutcome::end && line.text.empty()) return line;
            if (outcome == ByteOutcome::end || byte == '\n') break;
            line.text += static_cast<char>(byte);
        }
        line.outcome = Outcome::input;
        return line;
    }
    impl_->prompt = prompt;
    impl_->was_interrupted = false;
    el_resize(impl_->editor);
    int n = 0;
    const char* text = el_gets(impl_->editor, &n);
    if (impl_->was_interrupted) {
        const LineInfo* typed = el_line(impl_->editor);
        line.outcome = Outcome::interrupted;
        line.is_empty = typed == nullptr || typed->lastchar == typed->buffer;
        write_out("\n");
        return line;
    }
    if (text == nullptr || n <= 0) {
        write_out("\n");
        return line;
    }
    line.outcome = Outcome::input;
    line.text.assign(text, static_cast<std::size_t>(n));
    if (line.text.find_first_not_of(" \t\n") != std::string::npos) {
        HistEvent event{};
        history(impl_->history, &event, H_ENTER, text);
    }
    if (line.text.ends_with('\n')) line.text.pop_back();
    return line;
}

LineEditor::Line LineEditor::read_input() {
    Line whole = read_line(kPrompt);
    if (whole.outcome != Outcome::input) return whole;
    const bool is_block = whole.text == kBlockMark;
    if (is_block) whole.text.clear();
    bool is_first_of_block = is_block;
    for (;;) {
        if (!is_block) {
            if (!whole.text.ends_with('\\')) return whole;
            whole.text.back() = '\n';
        }
        Line next = read_line(kMorePrompt);
        if (next.outcome == Outcome::interrupted) {
            next.is_empty = false;  // something had been typed
            return next;
        }
        if (next.outcome == Outcome::end || (is_block && next.text == kBlockMark)) return whole;
        if (is_block && !is_first_of_block) whole.text += '\n';
        is_first_of_block = false;
        whole.text += next.text;
    }
}

std::string chat_history_file() {
    namespace fs = std::filesystem;
    const char* state = std::getenv("XDG_STATE_HOME");
    const char* home = std::getenv("HOME");
    fs::path folder;
    if (state != nullptr && *state == '/')
        folder = state;
    else if (home != nullptr && *home == '/')
        folder = fs::path(home) / ".local" / "state";
    else
        return {};
    folder /= "pantheon";
    std::error_code failure;
    fs::create_directories(folder, failure);
    return failure ? std::string() : (folder / "chat_history").string();
}

}  // namespace pantheon::cli

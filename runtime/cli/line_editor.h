// Reads what the user types: with editing and history on a terminal, plain lines otherwise.
#pragma once

#include <memory>
#include <string>

namespace pantheon::cli {

class LineEditor {
  public:
    /// history_file: read now, written at the end; empty: none is kept. Only used on a terminal.
    explicit LineEditor(const std::string& history_file);
    ~LineEditor();
    LineEditor(const LineEditor&) = delete;
    LineEditor& operator=(const LineEditor&) = delete;

    enum class Outcome {
        input,
        end,          // end of file, or Ctrl-D on an empty line
        interrupted,  // Ctrl-C; what had been typed is dropped
    };
    struct Line {
        Outcome outcome = Outcome::end;
        std::string text;       // without the newline
        bool is_empty = false;  // interrupted: nothing had been typed
    };

    /// A whole input: one line, or several when one ends with a backslash or between two lines of """.
    Line read_input();

  private:
    struct Impl;
    Line read_line(const char* prompt);
    std::unique_ptr<Impl> impl_;
};

/// $XDG_STATE_HOME/pantheon/chat_history, with its folder made; empty when there is no place for it.
std::string chat_history_file();

}  // namespace pantheon::cli

// Prints a generation as it comes: content to standard output, everything beside it to standard error.
#pragma once

#include <string>

#include "actors/client_messages.h"

namespace pantheon::cli {

class StreamPrinter {
  public:
    void print(const TokenEvent& event);
    /// A line that says how far the daemon is, for a terminal only; the next token takes it away.
    void print(const ProgressEvent& event);
    /// Ends the lines that are open. False when content could not be written.
    bool finish();

  private:
    void end_aside();
    void clear_progress();

    bool is_out_written_ = true;
    bool has_content_ = false;
    bool ends_with_newline_ = false;
    bool is_in_aside_ = false;
    bool aside_ends_with_newline_ = false;
    bool has_progress_line_ = false;
};

/// For people: "waiting for a free slot", "reading the prompt: 128 of 4000 tokens".
std::string progress_text(const ProgressEvent& event);

}  // namespace pantheon::cli

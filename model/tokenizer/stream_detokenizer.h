// Token by token to whole UTF-8 text: holds back the bytes of an unfinished character.
#pragma once

#include <string>
#include <string_view>

namespace pantheon::model {

/// For every way of cutting the same bytes into push() calls, everything returned, flush() included,
/// concatenates to to_valid_utf8 of the whole.
class StreamDetokenizer {
  public:
    /// Takes the bytes of the next token and returns all whole characters that are now known. A byte that can
    /// no longer become part of a character comes out as U+FFFD.
    std::string push(std::string_view bytes);
    /// What is left at the end of the stream, each byte of it as U+FFFD. The object is then as new.
    std::string flush();
    bool is_empty() const { return held_.empty(); }

  private:
    std::string held_;  // the beginning of a character: at most three bytes
};

}  // namespace pantheon::model

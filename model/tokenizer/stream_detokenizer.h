// Token by token to whole UTF-8 text: holds back the bytes of an unfinished character.
#pragma once

#include <string>
#include <string_view>

namespace pantheon::model {

class StreamDetokenizer {
  public:
    /// Takes the bytes of the next token and returns all whole characters that are now known. A byte that can no
    /// longer become part of a character comes out as U+FFFD.
    std::string push(std::string_view bytes);
    /// What is left at the end of the stream, each invalid byte as U+FFFD.
    std::string flush();
    bool is_empty() const { return held_.empty(); }

  private:
    std::string held_;
};

}  // namespace pantheon::model

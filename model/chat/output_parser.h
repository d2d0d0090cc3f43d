// Splits generated text into reasoning, content and tool calls as it streams, and stops at a stop string.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"

namespace pantheon::model {

enum class OutputKind { content, reasoning, tool_call };

struct OutputPiece {
    OutputKind kind = OutputKind::content;
    std::string text;
};

struct ToolCall {
    std::string name;            // empty when the block holds no call that can be read; it is then incomplete
    std::string arguments_json;  // one JSON object, keys in the order of the text
    bool is_incomplete = false;  // generation ended inside the call, or it is malformed
};

struct OutputParserConfig {
    bool starts_in_reasoning = false;
    bool parse_tool_calls = false;  // on when the request gave tools
    std::string tools_json;         // the request's tools, for parameter types; empty for none
    std::vector<std::string> stop;  // matched on content and tool-call text, not on reasoning
};

/// Text in, pieces out. For every way of cutting the same text into push() calls the concatenation of the
/// pieces of each kind is the same. Held back: the longest suffix that can still become a stop string or a
/// marker, and white space that is dropped if a marker follows.
///
/// Reasoning  (if starts_in_reasoning) is everything before the first </think>, white space at both ends
/// dropped: what
///            the template writes when the turn comes back as history. A <tool_call> in it is text.
/// Content    is what follows, without the newlines after </think>. White space before a <tool_call> is
/// dropped, and
///            after one unless content follows.
/// Tool calls (if parse_tool_calls) are <tool_call> blocks; the pieces carry their text as it is, tags
/// included. Stop       strings are no part of the text. The one that ends first counts.
class OutputParser {
  public:
    explicit OutputParser(OutputParserConfig config);
    ~OutputParser();
    OutputParser(OutputParser&&) noexcept;

    /// Whole UTF-8 text of the next token. Pieces are in order; empty when everything is held back.
    std::vector<OutputPiece> push(std::string_view text);
    /// End of generation: what was held back. Needless, but harmless, after a stop string.
    std::vector<OutputPiece> finish();

    /// Set once a stop string has matched; later text is ignored.
    const std::optional<std::string>& stop_match() const;
    bool in_reasoning() const;
    const std::string& content() const;  // everything released so far
    const std::string& reasoning() const;
    std::vector<ToolCall> tool_calls() const;  // complete ones; after finish() also a cut-off one

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace pantheon::model

// Renders a conversation into a prompt as the published Qwen3.5 templates do, with a record of which bytes
// the template itself wrote: only there may control tokens match.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/tokenizer/tokenizer.h"
#include "runtime/base/json.h"
#include "runtime/base/status.h"

namespace pantheon::model {

enum class TemplateFamily { qwen35, qwen35_small, qwen36 };

/// By substrings of the embedded template (contracts: tokens and text). `is_known` false: fell back to
/// qwen35.
struct TemplateChoice {
    TemplateFamily family = TemplateFamily::qwen35;
    bool is_known = false;
};
TemplateChoice choose_template(std::string_view jinja_source);

struct TemplateOptions {
    TemplateFamily family = TemplateFamily::qwen35;
    std::optional<bool> thinking;  // absent: the family's default
    bool add_generation_prompt = true;
    bool preserve_thinking = false;  // qwen36 only
};

struct RenderedPrompt {
    std::string text;
    std::vector<TextRange> trusted;    // what the template wrote; sorted, disjoint
    bool starts_in_reasoning = false;  // the generation prompt ends inside an open <think>
};

/// messages  array of OpenAI-form messages: `role` (system, developer, user, assistant, tool), `content`
/// (string, null
///           or text parts), `reasoning_content`, `tool_calls` with `arguments` as map or JSON string; other
///           fields are ignored
/// tools     array of OpenAI tool objects; null or empty: none
/// invalid_argument names the message index and field: "messages[2].role: …"; unimplemented does for image
/// and video parts. Time and memory are linear in the input.
Result<RenderedPrompt> render_chat(const Json& messages, const Json& tools, const TemplateOptions& options);

}  // namespace pantheon::model

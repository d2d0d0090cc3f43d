// From a decoded request to what the engine works with, and the ops that need only the tokenizer. Plain
// functions.
#pragma once

#include "actors/messages.h"

namespace pantheon::actors {

/// Fills defaults, renders and tokenises, checks every number. Errors name the field.
Result<Prepared> prepare_generate(const GenerateRequest& request, const TextModel& text, const Limits& limits,
                                  Clock::time_point received);
Result<Prepared> prepare_score(const ScoreRequest& request, const TextModel& text, const Limits& limits);

/// The `result` of tokenize, detokenize and template.
Result<Json> run_tokenize(const TokenizeRequest& request, const TextModel& text);
Result<Json> run_detokenize(const DetokenizeRequest& request, const TextModel& text);
Result<Json> run_template(const TemplateRequest& request, const TextModel& text);

}  // namespace pantheon::actors

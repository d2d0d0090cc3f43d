// What a die has to get right before it may serve.
#pragma once

#include "model/executor.h"
#include "model/tokenizer/tokenizer.h"
#include "runtime/base/status.h"

namespace pantheon::actors {

/// Evaluates two short prompts in slot 0, one after the other, and releases it: logits must be finite and
/// spread out (standard deviation above kCanaryMinDeviation), and the two prompts must not end in the same
/// row. data_loss, with what was seen, when not: a damaged file, or a device that computes nonsense.
Status run_canary(model::Executor& executor, const model::Tokenizer& tokenizer);

inline constexpr double kCanaryMinDeviation = 1e-3;

}  // namespace pantheon::actors

// Logits after every token of a given text: what `pantheon score` writes and perplexity is computed from.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "model/executor.h"
#include "runtime/base/ids.h"
#include "runtime/base/status.h"

namespace pantheon::model {

/// Receives the rows of one chunk, in order; an error it returns ends the scoring.
using ScoreSink = std::function<Status(const StepLogits& rows)>;

/// Binds `slot` (which must be free), evaluates ids in chunks of at most `chunk` tokens, and releases the
/// slot. Row t over all calls of the sink holds the raw logits after ids[t]. An id outside the vocabulary, no
/// ids or a chunk below 1 is invalid_argument before anything runs.
Status score(Executor& executor, SlotId slot, std::span<const TokenId> ids, std::int64_t n_vocab, int chunk,
             const ScoreSink& sink);

}  // namespace pantheon::model

// How well a model predicts a text.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "model/executor.h"
#include "runtime/base/ids.h"
#include "runtime/base/status.h"

namespace pantheon::model {

struct Perplexity {
    double value = 0;              // exp(mean_nll)
    double mean_nll = 0;           // nats: −1/n Σ ln p(ids[t] | ids[0 … t − 1]), t = 1 … n
    double error = 0;              // standard error of mean_nll, tokens taken as independent
    std::int64_t n_predicted = 0;  // every id but the first
};

/// Evaluates ids from position 0 in an own state and compares each next token with its logits; f64 sums.
/// `advance` hears how many more tokens are done; an error it returns ends the evaluation. Fewer than two ids
/// and what score() refuses are invalid_argument; logits that are not finite, data_loss.
Result<Perplexity> perplexity(Executor& executor, SlotId slot, std::span<const TokenId> ids,
                              std::int64_t n_vocab, int chunk,
                              const std::function<Status(std::int64_t n_tokens)>& advance);

}  // namespace pantheon::model

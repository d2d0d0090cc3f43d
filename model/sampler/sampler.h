// From a row of logits to a token: bias, penalties, temperature, top-k, top-p, min-p, and a draw that is a
// pure function of (seed, i), so that a replayed stream repeats exactly.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "model/sampler/logit_row.h"
#include "model/sampler/token_set.h"
#include "runtime/base/ids.h"
#include "runtime/base/status.h"

namespace pantheon::model {

/// Ranges are those that validate() checks.
struct SamplingParams {
    float temperature = 1.0F;                           // 0 … 100; 0: greedy
    std::int32_t top_k = 20;                            // ≥ 0; 0: off
    float top_p = 0.95F;                                // 0 … 1; 1: off
    float min_p = 0.0F;                                 // 0 … 1; 0: off
    float repeat_penalty = 1.0F;                        // above 0, at most 100
    float presence_penalty = 0.0F;                      // −100 … 100
    float frequency_penalty = 0.0F;                     // −100 … 100
    std::vector<std::pair<TokenId, float>> logit_bias;  // finite; several for one id add up
    std::uint64_t seed = 0;

    bool has_penalties() const {
        return repeat_penalty != 1.0F || presence_penalty != 0.0F || frequency_penalty != 0.0F;
    }
};

inline constexpr int kPenaltyWindow = 64;  // last prompt and generated tokens that penalties see
inline constexpr int kMaxTopLogprobs = 20;
inline constexpr std::size_t kMaxLogitBias = 1024;

/// invalid_argument names the field: "top_p: 1.5 is not in 0 … 1", "logit_bias[3]: token 999999 …".
Status validate(const SamplingParams& params, std::int32_t n_vocab);

struct TokenLogprob {
    TokenId token = -1;
    float logprob = 0.0F;  // natural log of the raw softmax, before bias, penalties and temperature
};

struct SampleResult {
    TokenId token = -1;             // −1: not finite, or every id is in never_sampled
    bool is_finite = true;          // false: a logit was NaN or infinite
    float logprob = 0.0F;           // raw, of `token`; filled when n_top ≥ 0
    std::vector<TokenLogprob> top;  // n_top entries, highest first, lower id first on ties
};

/// In this order: bias is added; for ids in the window, repeat_penalty r gives l > 0 ? l / r : l · r, then
/// presence_penalty and frequency_penalty × count are subtracted; weights are exp(l / temperature); the top_k
/// highest stay; of those the fewest highest that hold top_p of their weight; of those the ones with at least
/// min_p of the highest weight. Ties keep the lower id. The token is where uniform_draw × total falls in the
/// running sum over what is left, in order of id. All sums are in double.
///
/// row            raw
/// params         valid
/// window         the last tokens, oldest first; kPenaltyWindow of them count; ids out of range do not
/// index          i of the token drawn: 0 for the first generated one
/// never_sampled  ids that cannot come out, whatever the bias
/// n_top          −1: no logprobs; 0 … kMaxTopLogprobs: the token's own and so many alternatives
SampleResult sample(const LogitRow& row, const SamplingParams& params, std::span<const TokenId> window,
                    std::uint64_t index, const TokenSet& never_sampled, int n_top);

/// ln Σ exp(l) of a raw row; NaN when the row is not finite.
double log_sum_exp(std::span<const float> logits);
/// Natural log-softmax of one entry of a raw row; NaN when the row is not finite.
double raw_logprob(std::span<const float> logits, TokenId token);
/// The n highest entries with their raw logprobs, lower id first on ties; none when the row is not finite.
std::vector<TokenLogprob> top_logprobs(const LogitRow& row, int n);
/// The same for a caller that has the row's log_sum_exp.
std::vector<TokenLogprob> top_logprobs(const LogitRow& row, int n, double norm);

/// The uniform draw for (seed, index): in [0, 1), 53 bits; Philox4x32-10 with the seed as key and the index
/// as counter.
double uniform_draw(std::uint64_t seed, std::uint64_t index);

}  // namespace pantheon::model

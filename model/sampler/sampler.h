// From a row of logits to a token: bias, penalties, temperature, top-k, top-p, min-p, and a draw that is a pure
// function of (seed, i), so that a replayed stream repeats exactly.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "runtime/base/ids.h"

namespace pantheon::model {

struct SamplingParams {
    float temperature = 1.0F;        // 0: greedy
    std::int32_t top_k = 20;         // 0: off
    float top_p = 0.95F;             // 1: off
    float min_p = 0.0F;              // 0: off
    float repeat_penalty = 1.0F;
    float presence_penalty = 0.0F;
    float frequency_penalty = 0.0F;
    std::vector<std::pair<TokenId, float>> logit_bias;
    std::uint64_t seed = 0;
};

inline constexpr int kPenaltyWindow = 64;   // last prompt and generated tokens that penalties see
inline constexpr int kMaxTopLogprobs = 20;

struct TokenLogprob {
    TokenId token = -1;
    float logprob = 0.0F;            // natural log of the raw softmax, before bias, penalties and temperature
};

struct SampleResult {
    TokenId token = -1;
    bool is_finite = true;           // false: a logit was NaN or infinite, token is −1
    float logprob = 0.0F;            // raw, of `token`; filled when n_top ≥ 0
    std::vector<TokenLogprob> top;   // n_top entries, highest first, lower id first on ties
};

/// logits         f32 [n_vocab], raw, not changed
/// window         the last ≤ kPenaltyWindow tokens, oldest first
/// index          i of the token drawn: 0 for the first generated one
/// never_sampled  ids that cannot come out, whatever the bias
/// n_top          −1: no logprobs; 0 … kMaxTopLogprobs: the token's own and so many alternatives
SampleResult sample(std::span<const float> logits, const SamplingParams& params, std::span<const TokenId> window,
                    std::uint64_t index, std::span<const TokenId> never_sampled, int n_top);

/// Natural log-softmax of one entry of a raw row; NaN when the row is not finite.
double raw_logprob(std::span<const float> logits, TokenId token);
/// The n highest entries with their raw logprobs, lower id first on ties.
std::vector<TokenLogprob> top_logprobs(std::span<const float> logits, int n);

/// The uniform draw for (seed, index): in [0, 1), 53 bits, counter-based (Philox-style; no state).
double uniform_draw(std::uint64_t seed, std::uint64_t index);

}  // namespace pantheon::model

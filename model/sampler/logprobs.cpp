// Log-probabilities of the raw logits: what the model said, before any sampling setting.
#include <algorithm>
#include <cmath>
#include <limits>

#include "model/sampler/sampler.h"
#include "model/sampler/selection.h"

namespace pantheon::model {

double log_sum_exp(std::span<const float> logits) {
    if (logits.empty()) return std::numeric_limits<double>::quiet_NaN();
    float max = logits[0];
    bool is_finite = true;
    for (const float l : logits) {
        is_finite = is_finite && std::isfinite(l);
        max = std::max(max, l);
    }
    if (!is_finite) return std::numeric_limits<double>::quiet_NaN();
    double sum = 0.0;
    for (const float l : logits) sum += std::exp(static_cast<double>(l) - max);
    return max + std::log(sum);
}

double raw_logprob(std::span<const float> logits, TokenId token) {
    if (token < 0 || static_cast<std::size_t>(token) >= logits.size())
        return std::numeric_limits<double>::quiet_NaN();
    return logits[static_cast<std::size_t>(token)] - log_sum_exp(logits);
}

std::vector<TokenLogprob> top_logprobs(const LogitRow& row, int n) {
    return n <= 0 ? std::vector<TokenLogprob>() : top_logprobs(row, n, log_sum_exp(row.values));
}

std::vector<TokenLogprob> top_logprobs(const LogitRow& row, int n, double norm) {
    if (n <= 0 || std::isnan(norm)) return {};
    std::vector<Candidate> best = select_top(row, {}, {}, static_cast<std::size_t>(n));
    std::sort(best.begin(), best.end(), comes_before);
    std::vector<TokenLogprob> result;
    result.reserve(best.size());
    for (const Candidate& c : best) result.push_back({c.id, static_cast<float>(c.logit - norm)});
    return result;
}

}  // namespace pantheon::model

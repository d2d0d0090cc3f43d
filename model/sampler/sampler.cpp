#include "model/sampler/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/sampler/philox.h"
#include "model/sampler/selection.h"

namespace pantheon::model {
namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();
constexpr float kLargest = std::numeric_limits<float>::max();

/// Bias and penalties of extreme size saturate, so that only masked entries are infinite.
float saturate(double logit) {
    return static_cast<float>(std::clamp<double>(logit, -kLargest, kLargest));
}

/// The few logits that settings change, in order of id.
class AdjustedLogits {
  public:
    AdjustedLogits(std::span<const float> raw, const SamplingParams& params, std::span<const TokenId> window)
        : n_vocab_(raw.size()) {
        std::vector<TokenId> ids;
        for (const auto& [id, bias] : params.logit_bias) ids.push_back(id);
        if (params.has_penalties()) ids.insert(ids.end(), window.begin(), window.end());
        std::sort(ids.begin(), ids.end());
        ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
        for (const TokenId id : ids)
            if (is_known(id)) changed_.push_back({raw[static_cast<std::size_t>(id)], id});
    }

    void add_bias(std::span<const std::pair<TokenId, float>> biases) {
        for (const auto& [id, bias] : biases)
            if (float* l = find(id)) *l = saturate(double{*l} + bias);
    }

    void penalise(const SamplingParams& params, std::span<const TokenId> window) {
        if (!params.has_penalties()) return;
        std::vector<TokenId> seen(window.begin(), window.end());
        std::sort(seen.begin(), seen.end());
        for (auto it = seen.begin(); it != seen.end();) {
            const auto end = std::upper_bound(it, seen.end(), *it);
            if (float* l = find(*it)) {
                const double repeated =
                    *l > 0.0F ? double{*l} / params.repeat_penalty : double{*l} * params.repeat_penalty;
                const auto count = static_cast<double>(end - it);
                *l = saturate(repeated - params.presence_penalty - count * params.frequency_penalty);
            }
            it = end;
        }
    }

    std::span<const Candidate> changed() const { return changed_; }

  private:
    bool is_known(TokenId id) const { return id >= 0 && static_cast<std::size_t>(id) < n_vocab_; }
    float* find(TokenId id) {
        if (!is_known(id)) return nullptr;
        const auto at = std::lower_bound(changed_.begin(), changed_.end(), id,
                                         [](const Candidate& c, TokenId wanted) { return c.id < wanted; });
        return &at->logit;  // every id that is asked for is there
    }
    std::size_t n_vocab_;
    std::vector<Candidate> changed_;
};

/// Walks the candidates in order of id to where the draw falls.
TokenId draw(std::vector<Candidate>& candidates, double max_logit, const SamplingParams& params,
             std::uint64_t index) {
    const auto is_ordered = [](const Candidate& a, const Candidate& b) { return a.id < b.id; };
    if (!std::is_sorted(candidates.begin(), candidates.end(), is_ordered))
        std::sort(candidates.begin(), candidates.end(), is_ordered);
    std::vector<double> sums;
    sums.reserve(candidates.size());
    double total = 0.0;
    for (const Candidate& c : candidates) {
        const double weight = std::exp((c.logit - max_logit) / params.temperature);
        if (weight >= params.min_p) total += weight;  // the highest weight is 1
        sums.push_back(total);
    }
    // total ≥ 1 and the draw is below 1, so the product is below the last sum.
    const double target = uniform_draw(params.seed, index) * total;
    const auto it = std::upper_bound(sums.begin(), sums.end(), target);
    const std::size_t i = std::min<std::size_t>(static_cast<std::size_t>(it - sums.begin()), sums.size() - 1);
    return candidates[i].id;
}

TokenId choose(const LogitRow& row, std::span<const Candidate> changed, const TokenSet& left_out,
               const SamplingParams& params, std::uint64_t index) {
    const bool is_greedy = params.temperature == 0.0F;
    const std::size_t k = is_greedy           ? 1
                          : params.top_k == 0 ? row.values.size()
                                              : static_cast<std::size_t>(params.top_k);
    std::vector<Candidate> candidates = select_top(row, changed, left_out, k);
    if (candidates.empty()) return -1;
    if (is_greedy) return candidates[0].id;
    const double max_logit = std::min_element(candidates.begin(), candidates.end(), comes_before)->logit;
    if (params.top_p < 1.0F) keep_nucleus(candidates, max_logit, params.temperature, params.top_p);
    return draw(candidates, max_logit, params, index);
}

}  // namespace

double uniform_draw(std::uint64_t seed, std::uint64_t index) {
    const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
    const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
    const auto r = philox4x32_10({low(index), high(index), 0, 0}, {low(seed), high(seed)});
    const std::uint64_t bits = std::uint64_t{r[0]} << 32 | r[1];
    return static_cast<double>(bits >> 11) * 0x1p-53;
}

SampleResult sample(const LogitRow& row, const SamplingParams& params, std::span<const TokenId> window,
                    std::uint64_t index, const TokenSet& never_sampled, int n_top) {
    SampleResult result;
    result.is_finite = row.is_finite();
    if (!result.is_finite) return result;
    if (window.size() > kPenaltyWindow) window = window.last(kPenaltyWindow);
    AdjustedLogits adjusted(row.values, params, window);
    adjusted.add_bias(params.logit_bias);
    adjusted.penalise(params, window);
    result.token = choose(row, adjusted.changed(), never_sampled, params, index);
    if (n_top >= 0 && result.token >= 0) {
        const double norm = log_sum_exp(row.values);
        result.logprob = static_cast<float>(row.values[static_cast<std::size_t>(result.token)] - norm);
        result.top = top_logprobs(row, n_top, norm);
    }
    return result;
}

}  // namespace pantheon::model

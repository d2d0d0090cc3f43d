#include "model/sampler/selection.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace pantheon::model {
namespace {

/// Below this a bounded heap, which most entries never enter, beats partitioning all of them.
constexpr std::size_t kHeapLimit = 512;
constexpr std::size_t kFirstNucleus = 256;
constexpr float kMasked = -std::numeric_limits<float>::infinity();

std::vector<Candidate> select_by_heap(std::span<const float> logits, std::size_t k) {
    // The heap's front is the worst candidate kept. Ids ascend, so an equal logit never replaces it.
    std::vector<Candidate> heap;
    heap.reserve(k);
    float worst = kMasked;
    for (std::size_t i = 0; i < logits.size(); ++i) {
        if (!(logits[i] > worst)) continue;
        if (heap.size() == k) {
            std::pop_heap(heap.begin(), heap.end(), comes_before);
            heap.pop_back();
        }
        heap.push_back({logits[i], static_cast<TokenId>(i)});
        std::push_heap(heap.begin(), heap.end(), comes_before);
        if (heap.size() == k) worst = heap.front().logit;
    }
    return heap;
}

}  // namespace

std::vector<Candidate> select_top(std::span<const float> logits, std::size_t k) {
    if (k == 0) return {};
    if (k <= kHeapLimit) return select_by_heap(logits, k);
    std::vector<Candidate> all;
    all.reserve(logits.size());
    for (std::size_t i = 0; i < logits.size(); ++i)
        if (logits[i] != kMasked) all.push_back({logits[i], static_cast<TokenId>(i)});
    if (k < all.size()) {
        std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(k), all.end(), comes_before);
        all.resize(k);
    }
    return all;
}

void keep_nucleus(std::vector<Candidate>& candidates, double max_logit, double temperature, double share) {
    const auto weight = [&](const Candidate& c) { return std::exp((c.logit - max_logit) / temperature); };
    double total = 0.0;
    for (const Candidate& c : candidates) total += weight(c);

    // The best few, then the next best few times as many, until the share is reached.
    double sum = 0.0;
    std::size_t n_sorted = 0;
    for (std::size_t n_next = kFirstNucleus; n_sorted < candidates.size(); n_next *= 4) {
        const auto begin = candidates.begin() + static_cast<std::ptrdiff_t>(n_sorted);
        const auto end =
            candidates.begin() + static_cast<std::ptrdiff_t>(std::min(n_next, candidates.size()));
        if (end != candidates.end()) std::nth_element(begin, end, candidates.end(), comes_before);
        std::sort(begin, end, comes_before);
        for (auto it = begin; it != end; ++it) {
            sum += weight(*it);
            if (sum >= share * total) {
                candidates.resize(static_cast<std::size_t>(it - candidates.begin()) + 1);
                return;
            }
        }
        n_sorted = static_cast<std::size_t>(end - candidates.begin());
    }
}

}  // namespace pantheon::model

#include "model/sampler/selection.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace pantheon::model {
namespace {

/// Below this a bounded heap, which most entries never enter, beats partitioning all of them.
constexpr std::size_t kHeapLimit = 512;
constexpr std::size_t kFirstNucleus = 256;
constexpr float kMasked = -std::numeric_limits<float>::infinity();

/// The best k so far. Ids must come in ascending order: an equal logit then never replaces one.
class BestFew {
  public:
    BestFew(std::size_t k, const TokenSet& left_out) : k_(k), left_out_(left_out) { heap_.reserve(k); }

    float worst() const { return worst_; }
    void add(float logit, TokenId id) {
        if (!(logit > worst_) || left_out_.contains(id)) return;
        if (heap_.size() == k_) {
            std::pop_heap(heap_.begin(), heap_.end(), comes_before);
            heap_.pop_back();
        }
        heap_.push_back({logit, id});
        std::push_heap(heap_.begin(), heap_.end(), comes_before);  // the front is the worst
        if (heap_.size() == k_) worst_ = heap_.front().logit;
    }
    std::vector<Candidate> take() { return std::move(heap_); }

  private:
    std::size_t k_;
    const TokenSet& left_out_;
    float worst_ = kMasked;
    std::vector<Candidate> heap_;
};

std::vector<Candidate> select_by_tiles(const LogitRow& row, std::span<const Candidate> changed,
                                       const TokenSet& left_out, std::size_t k) {
    constexpr std::size_t kTile = kernels::kLogitTile;
    const std::size_t n = row.values.size();
    BestFew best(k, left_out);
    auto next = changed.begin();
    for (std::size_t first = 0; first < n; first += kTile) {
        std::span<const float> tile = row.values.subspan(first, std::min(kTile, n - first));
        float patched[kTile];
        const auto is_here = [&] {
            return next != changed.end() && static_cast<std::size_t>(next->id) < first + tile.size();
        };
        if (is_here()) {
            std::copy(tile.begin(), tile.end(), patched);
            for (; is_here(); ++next) patched[static_cast<std::size_t>(next->id) - first] = next->logit;
            tile = {patched, tile.size()};
        } else if (!row.tile_maxima.empty() && row.tile_maxima[first / kTile] <= best.worst()) {
            continue;  // what is not finite has NaN there, and is read
        }
        for (std::size_t i = 0; i < tile.size(); ++i) best.add(tile[i], static_cast<TokenId>(first + i));
    }
    return best.take();
}

}  // namespace

bool LogitRow::is_finite() const {
    const auto is_plain = [](float l) { return std::isfinite(l); };
    const std::span<const float> all = tile_maxima.empty() ? values : tile_maxima;
    return std::all_of(all.begin(), all.end(), is_plain);
}

std::vector<Candidate> select_top(const LogitRow& row, std::span<const Candidate> changed,
                                  const TokenSet& left_out, std::size_t k) {
    if (k == 0) return {};
    if (k <= kHeapLimit) return select_by_tiles(row, changed, left_out, k);
    std::vector<Candidate> all;
    all.reserve(row.values.size());
    for (const float logit : row.values) all.push_back({logit, static_cast<TokenId>(all.size())});
    for (const Candidate& c : changed) all[static_cast<std::size_t>(c.id)] = c;
    std::erase_if(all, [&](const Candidate& c) { return c.logit == kMasked || left_out.contains(c.id); });
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

#include "kernels/moe/router.h"

#include <algorithm>
#include <cmath>

namespace pantheon::kernels {
namespace {

constexpr double kMinWeightSum = 1.0 / 16384;  // the reference implementation's floor, 2⁻¹⁴

/// The expert with the largest logit (so with the largest p) that is not yet among ids[0 … n_picked).
std::int32_t best_unpicked(const float* logits, int n_expert, const std::int32_t* ids, int n_picked) {
    std::int32_t best = -1;
    for (std::int32_t e = 0; e < n_expert; ++e) {
        if (std::find(ids, ids + n_picked, e) != ids + n_picked) continue;
        if (best < 0 || logits[e] > logits[best]) best = e;
    }
    return best;
}

}  // namespace

void router_ref(Exec& exec, const float* logits, std::int32_t* ids, float* weights, int n_rows, int n_expert,
                int n_used) {
    exec.team().parallel_for(n_rows, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) {
            const float* row = logits + r * n_expert;
            std::int32_t* picked = ids + r * n_used;
            float* weight = weights + r * n_used;
            for (int i = 0; i < n_used; ++i) picked[i] = best_unpicked(row, n_expert, picked, i);

            const double max_logit = row[picked[0]];
            double sum_all = 0;
            for (int e = 0; e < n_expert; ++e) sum_all += std::exp(row[e] - max_logit);
            const auto probability = [&](std::int32_t e) { return std::exp(row[e] - max_logit) / sum_all; };
            double sum_picked = 0;
            for (int i = 0; i < n_used; ++i) sum_picked += probability(picked[i]);
            for (int i = 0; i < n_used; ++i)
                weight[i] = static_cast<float>(probability(picked[i]) / std::max(sum_picked, kMinWeightSum));
        }
    });
}

}  // namespace pantheon::kernels

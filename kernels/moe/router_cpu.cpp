#include <algorithm>

#include "kernels/cpu/leaves.h"
#include "kernels/moe/router.h"

namespace pantheon::kernels {
namespace {

constexpr double kMinWeightSum = 1.0 / 16384;  // the reference implementation's floor, 2⁻¹⁴

/// The n_used largest logits, descending, equal ones in the order of their index, in one pass.
void pick(const float* logits, int n_expert, int n_used, std::int32_t* picked) {
    int n = 0;
    for (std::int32_t e = 0; e < n_expert; ++e) {
        if (n == n_used && !(logits[e] > logits[picked[n - 1]])) continue;
        int at = n < n_used ? n++ : n - 1;
        for (; at > 0 && logits[e] > logits[picked[at - 1]]; --at) picked[at] = picked[at - 1];
        picked[at] = e;
    }
}

/// Σ exp(x − max), added in order.
double sum_of_exp(const Leaves& leaves, const float* x, int n, float max) {
    constexpr int kChunk = 64;
    float e[kChunk];
    double sum = 0;
    for (int first = 0; first < n; first += kChunk) {
        const int m = std::min(kChunk, n - first);
        leaves.exp_minus(x + first, max, e, m);
        for (int i = 0; i < m; ++i) sum += static_cast<double>(e[i]);
    }
    return sum;
}

}  // namespace

void router_cpu(Exec& exec, const float* logits, std::int32_t* ids, float* weights, int n_rows, int n_expert,
                int n_used) {
    const Leaves& leaves = cpu_leaves(exec.isa());
    exec.team().parallel_for(n_rows, 8, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) {
            const float* row = logits + r * n_expert;
            std::int32_t* picked = ids + r * n_used;
            float* weight = weights + r * n_used;
            pick(row, n_expert, n_used, picked);
            const float max = row[picked[0]];
            const double sum_all = sum_of_exp(leaves, row, n_expert, max);
            for (int i = 0; i < n_used; ++i) weight[i] = row[picked[i]];
            leaves.exp_minus(weight, max, weight, n_used);
            double sum_picked = 0;
            for (int i = 0; i < n_used; ++i) sum_picked += static_cast<double>(weight[i]) / sum_all;
            const double floored = std::max(sum_picked, kMinWeightSum) * sum_all;
            for (int i = 0; i < n_used; ++i) weight[i] = static_cast<float>(weight[i] / floored);
        }
    });
}

}  // namespace pantheon::kernels

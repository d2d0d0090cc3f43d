#include "kernels/attention/attention.h"

#include <algorithm>
#include <limits>

#include "kernels/cpu/leaves.h"

namespace pantheon::kernels {
namespace {

/// All pages for queries that share a KV head; n_kv_rows are visible.
void attend(const Leaves& leaves, const KvView& kv, int kv_head, std::int64_t n_kv_rows,
            AttentionQueries& queries) {
    for (std::int64_t first = 0; first < n_kv_rows; first += kKvPageRows) {
        const int n = static_cast<int>(std::min<std::int64_t>(kKvPageRows, n_kv_rows - first));
        leaves.attend_page(kv, kv.k_row(first, kv_head), kv.v_row(first, kv_head), n, queries);
    }
    for (int h = 0; h < queries.n; ++h) {
        const float inverse = 1.0f / queries.weight[h];
        for (int i = 0; i < kv.head_dim; ++i) queries.sum[h][i] *= inverse;
    }
}

}  // namespace

void attention_cpu(Exec& exec, const AttentionRun* runs, int n_runs, const float* q, float* y, int n_head) {
    constexpr int kMax = AttentionQueries::kMax;
    const Leaves& leaves = cpu_leaves(exec.isa());
    for (int s = 0; s < n_runs; ++s) {
        const AttentionRun& run = runs[s];
        const int head_dim = run.kv.head_dim;
        const int group = n_head / run.kv.n_head_kv;  // query heads of a KV head
        const int n_parts = (group + kMax - 1) / kMax;
        const std::int64_t items_per_row = static_cast<std::int64_t>(run.kv.n_head_kv) * n_parts;
        exec.team().parallel_for(run.n_rows * items_per_row, 1, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t item = begin; item < end; ++item) {
                const std::int64_t j = item / items_per_row;
                const int kv_head = static_cast<int>(item % items_per_row / n_parts);
                const int part = static_cast<int>(item % n_parts);
                AttentionQueries queries;
                queries.n = std::min(kMax, group - part * kMax);
                for (int h = 0; h < queries.n; ++h) {
                    const int head = kv_head * group + part * kMax + h;
                    const std::int64_t at = ((run.first_row + j) * n_head + head) * head_dim;
                    queries.q[h] = q + at;
                    queries.sum[h] = y + at;
                    queries.max[h] = -std::numeric_limits<float>::infinity();
                    queries.weight[h] = 0;
                    std::fill_n(y + at, head_dim, 0.0f);
                }
                attend(leaves, run.kv, kv_head, run.pos + j + 1, queries);
            }
        });
    }
}

}  // namespace pantheon::kernels

#include "kernels/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/attention/kv_rows.h"
#include "kernels/exec/ref_math.h"

namespace pantheon::kernels {
namespace {

struct Scratch {
    double* weight;  // [rows that a query reads]
    double* sum;     // [head_dim]
    float* row;      // [head_dim]
};

/// Calls f(type, K row, V row) for each row that a query at p reads, in order.
template <class F>
void for_each_row(const KvView& kv, int kv_head, std::int64_t p, const F& f) {
    KvStretch stretches[kMaxKvStretches];
    for (std::int64_t first = 0; first <= p; first += kKvPageRows) {
        const int n = kv.stretches(first, kv_head, kv.cut(first, p), stretches);
        for (int s = 0; s < n; ++s) {
            for (int r = 0; r < stretches[s].n_rows; ++r) {
                const std::size_t at = static_cast<std::size_t>(r) * stretches[s].row_bytes;
                f(stretches[s].type, stretches[s].k + at, stretches[s].v + at);
            }
        }
    }
}

void attend(const KvView& kv, int kv_head, std::int64_t p, const float* q, float* y, const Scratch& scratch) {
    const double scale = 1.0 / std::sqrt(static_cast<double>(kv.head_dim));
    double max_score = -std::numeric_limits<double>::infinity();
    std::int64_t n_rows = 0;
    for_each_row(kv, kv_head, p, [&](KvRowType type, const std::byte* k, const std::byte*) {
        load_kv_row(type, k, kv.head_dim, scratch.row);
        scratch.weight[n_rows] = ref::dot(q, scratch.row, kv.head_dim) * scale;
        max_score = std::max(max_score, scratch.weight[n_rows++]);
    });
    double weight_sum = 0;
    for (std::int64_t r = 0; r < n_rows; ++r) {
        scratch.weight[r] = std::exp(scratch.weight[r] - max_score);
        weight_sum += scratch.weight[r];
    }
    std::fill_n(scratch.sum, kv.head_dim, 0.0);
    const double* weight = scratch.weight;
    for_each_row(kv, kv_head, p, [&](KvRowType type, const std::byte*, const std::byte* v) {
        load_kv_row(type, v, kv.head_dim, scratch.row);
        for (int i = 0; i < kv.head_dim; ++i) scratch.sum[i] += *weight * scratch.row[i];
        ++weight;
    });
    for (int i = 0; i < kv.head_dim; ++i) y[i] = static_cast<float>(scratch.sum[i] / weight_sum);
}

}  // namespace

void attention_ref(Exec& exec, const AttentionRun* runs, int n_runs, const float* q, float* y, int n_head) {
    for (int s = 0; s < n_runs; ++s) {
        const AttentionRun& run = runs[s];
        const int head_dim = run.kv.head_dim;
        const int group = n_head / run.kv.n_head_kv;
        const std::int64_t last = run.pos + run.n_rows - 1;
        const std::int64_t n_kv_rows =
            run.kv.reach > 0 ? std::min(last + 1, run.kv.sink + run.kv.reach) : last + 1;
        exec.team().parallel_for(
            static_cast<std::int64_t>(run.n_rows) * n_head, 1,
            [&](int thread, std::int64_t begin, std::int64_t end) {
                Scratch scratch{};
                scratch.weight = exec.scratch<double>(thread, static_cast<std::size_t>(n_kv_rows + head_dim));
                scratch.sum = scratch.weight + n_kv_rows;
                scratch.row =
                    exec.scratch<float>(thread, static_cast<std::size_t>(head_dim),
                                        static_cast<std::size_t>(n_kv_rows + head_dim) * sizeof(double));
                for (std::int64_t item = begin; item < end; ++item) {
                    const std::int64_t j = item / n_head;
                    const int h = static_cast<int>(item % n_head);
                    const std::int64_t at = ((run.first_row + j) * n_head + h) * head_dim;
                    attend(run.kv, h / group, run.pos + j, q + at, y + at, scratch);
                }
            });
    }
}

}  // namespace pantheon::kernels

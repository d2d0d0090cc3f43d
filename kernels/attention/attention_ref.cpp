#include "kernels/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/exec/ref_math.h"
#include "kernels/quant/dequantize.h"

namespace pantheon::kernels {
namespace {

void load_row(KvRowType type, const std::byte* row, int n, float* x) {
    dequantize_row(type == KvRowType::f32 ? WeightType::f32 : WeightType::f16, row, x, n);
}

struct Scratch {
    double* weight;  // [rows]
    double* sum;     // [head_dim]
    float* row;      // [head_dim]
};

void attend(const KvView& kv, int kv_head, std::int64_t n_rows, const float* q, float* y,
            const Scratch& scratch) {
    const double scale = 1.0 / std::sqrt(static_cast<double>(kv.head_dim));
    double max_score = -std::numeric_limits<double>::infinity();
    for (std::int64_t r = 0; r < n_rows; ++r) {
        load_row(kv.type, kv.k_row(r, kv_head), kv.head_dim, scratch.row);
        scratch.weight[r] = ref::dot(q, scratch.row, kv.head_dim) * scale;
        max_score = std::max(max_score, scratch.weight[r]);
    }
    double weight_sum = 0;
    for (std::int64_t r = 0; r < n_rows; ++r) {
        scratch.weight[r] = std::exp(scratch.weight[r] - max_score);
        weight_sum += scratch.weight[r];
    }
    std::fill_n(scratch.sum, kv.head_dim, 0.0);
    for (std::int64_t r = 0; r < n_rows; ++r) {
        load_row(kv.type, kv.v_row(r, kv_head), kv.head_dim, scratch.row);
        for (int i = 0; i < kv.head_dim; ++i) scratch.sum[i] += scratch.weight[r] * scratch.row[i];
    }
    for (int i = 0; i < kv.head_dim; ++i) y[i] = static_cast<float>(scratch.sum[i] / weight_sum);
}

}  // namespace

void attention_ref(Exec& exec, const AttentionRun* runs, int n_runs, const float* q, float* y, int n_head) {
    for (int s = 0; s < n_runs; ++s) {
        const AttentionRun& run = runs[s];
        const int head_dim = run.kv.head_dim;
        const int group = n_head / run.kv.n_head_kv;
        const std::int64_t n_kv_rows = run.pos + run.n_rows;
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
                    attend(run.kv, h / group, run.pos + j + 1, q + at, y + at, scratch);
                }
            });
    }
}

}  // namespace pantheon::kernels

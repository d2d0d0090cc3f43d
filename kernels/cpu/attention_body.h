// Attention of a few queries over one page of K and V; contract in leaves.h.
#pragma once

#include "kernels/cpu/leaves.h"
#include "kernels/cpu/math8.h"

namespace pantheon::kernels::PANTHEON_ISA {

struct KvF32 {
    static constexpr int kBytes = 4;
    static F8 load(const std::byte* p) { return PANTHEON_ISA::load(reinterpret_cast<const float*>(p)); }
};
struct KvF16 {
    static constexpr int kBytes = 2;
    static F8 load(const std::byte* p) { return load_f16(p); }
};

/// Eight values of a row from element i on; past the end of the row 0.
template <class Kv>
inline F8 load_row(const std::byte* row, int i, int head_dim) {
    const std::byte* p = row + static_cast<std::ptrdiff_t>(i) * Kv::kBytes;
    if (head_dim - i >= 8) return Kv::load(p);
    std::byte padded[8 * Kv::kBytes] = {};
    std::memcpy(padded, p, static_cast<std::size_t>(head_dim - i) * Kv::kBytes);
    return Kv::load(padded);
}

constexpr int kQueries = AttentionQueries::kMax;

struct PageScores {
    float s[kQueries][kKvPageRows];
};

/// s[h][r] = q_h · K_r · scale, two rows at a time; rows past the end get −∞.
template <class Kv>
inline void score_rows(const std::byte* k, int n_rows, int d, const float* const* q, float scale,
                       PageScores& scores) {
    const std::ptrdiff_t row_bytes = static_cast<std::ptrdiff_t>(d) * Kv::kBytes;
    for (int r = 0; r < n_rows; r += 2) {
        const std::byte* first = k + r * row_bytes;
        const std::byte* second = r + 1 < n_rows ? first + row_bytes : first;
        F8 dots[8];
        for (F8& dot : dots) dot = zero8();
        for (int i = 0; i < d; i += 8) {
            const F8 a = load_row<Kv>(first, i, d), b = load_row<Kv>(second, i, d);
            for (int h = 0; h < kQueries; ++h) {
                const F8 x = load_some(q[h] + i, d - i);
                dots[h] = fma(x, a, dots[h]);
                dots[kQueries + h] = fma(x, b, dots[kQueries + h]);
            }
        }
        float sums[8];
        store(sums, sum_each(dots) * set1(scale));
        for (int h = 0; h < kQueries; ++h) {
            scores.s[h][r] = sums[h];
            scores.s[h][r + 1] = sums[kQueries + h];
        }
    }
    for (int h = 0; h < kQueries; ++h)
        for (int r = n_rows; r < kKvPageRows; ++r) scores.s[h][r] = -__builtin_inff();
}

/// Scores become weights exp(s − m); returns their sum and sets m.
inline float softmax_row(float* s, float& m) {
    F8 largest = load(s);
    for (int r = 8; r < kKvPageRows; r += 8) largest = max(largest, load(s + r));
    float lanes[8];
    store(lanes, largest);
    m = lanes[0];
    for (int i = 1; i < 8; ++i) m = lanes[i] > m ? lanes[i] : m;
    F8 total = zero8();
    for (int r = 0; r < kKvPageRows; r += 8) {
        const F8 p = exp(load(s + r) - set1(m));
        store(s + r, p);
        total = total + p;
    }
    return sum(total);
}

/// sum_h ← sum_h · keep_h + take_h · Σ_r weight[h][r] V_r
template <class Kv>
inline void add_values(const std::byte* v, int n_rows, int d, const PageScores& weights, const float* keep,
                       const float* take, float* const* sums) {
    const std::ptrdiff_t row_bytes = static_cast<std::ptrdiff_t>(d) * Kv::kBytes;
    for (int i = 0; i < d; i += 16) {
        const bool has_second = i + 8 < d;
        F8 low[kQueries], high[kQueries];
        for (int h = 0; h < kQueries; ++h) low[h] = high[h] = zero8();
        for (int r = 0; r < n_rows; ++r) {
            const std::byte* row = v + r * row_bytes;
            const F8 a = load_row<Kv>(row, i, d);
            const F8 b = has_second ? load_row<Kv>(row, i + 8, d) : a;
            for (int h = 0; h < kQueries; ++h) {
                const F8 w = set1(weights.s[h][r]);
                low[h] = fma(w, a, low[h]);
                high[h] = fma(w, b, high[h]);
            }
        }
        for (int h = 0; h < kQueries; ++h) {
            if (!sums[h]) continue;
            float* y = sums[h] + i;
            store_some(y, fma(load_some(y, d - i), set1(keep[h]), low[h] * set1(take[h])), d - i);
            if (!has_second) continue;
            const int n = d - i - 8;
            store_some(y + 8, fma(load_some(y + 8, n), set1(keep[h]), high[h] * set1(take[h])), n);
        }
    }
}

template <class Kv>
inline void attend_page_of(const std::byte* k, const std::byte* v, int n_rows, int d,
                           AttentionQueries& queries) {
    const float scale = static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(d)));
    const float* q[kQueries];
    float* sums[kQueries];
    float keep[kQueries] = {}, take[kQueries] = {};
    for (int h = 0; h < kQueries; ++h) {  // places without a query repeat the first and are dropped
        q[h] = queries.q[h < queries.n ? h : 0];
        sums[h] = h < queries.n ? queries.sum[h] : nullptr;
    }
    PageScores scores;
    score_rows<Kv>(k, n_rows, d, q, scale, scores);
    for (int h = 0; h < kQueries; ++h) {
        float page_max;
        const float page_weight = softmax_row(scores.s[h], page_max);
        if (h >= queries.n) continue;
        const float old = queries.max[h];
        const float now = page_max > old ? page_max : old;
        keep[h] = first_lane(exp(set1(old - now)));
        take[h] = first_lane(exp(set1(page_max - now)));
        queries.max[h] = now;
        queries.weight[h] = __builtin_fmaf(queries.weight[h], keep[h], page_weight * take[h]);
    }
    add_values<Kv>(v, n_rows, d, scores, keep, take, sums);
}

inline void attend_page(const KvView& kv, const std::byte* k, const std::byte* v, int n_rows,
                        AttentionQueries& queries) {
    if (kv.type == KvRowType::f32) return attend_page_of<KvF32>(k, v, n_rows, kv.head_dim, queries);
    attend_page_of<KvF16>(k, v, n_rows, kv.head_dim, queries);
}

}  // namespace pantheon::kernels::PANTHEON_ISA

// Attention of a few queries over one page of K and V; contract in leaves.h.
#pragma once

#include "kernels/cpu/kv_unpack.h"
#include "kernels/cpu/leaves.h"
#include "kernels/cpu/math8.h"

namespace pantheon::kernels::PANTHEON_ISA {

constexpr int kQuad = QueryQuad::kSize;
constexpr int kTileRows = kAttentionTileRows;
constexpr int kStep = 16;  // values of V that are summed at once

/// As padded_head_dim, but a function of this instruction set.
inline int padded_to_blocks(int d) {
    return (d + kKvBlock - 1) / kKvBlock * kKvBlock;
}
inline int least(int a, int b) {
    return a < b ? a : b;
}

/// s[h][r] = q_h · K_r · scale for the first n_rows rows of an unpacked tile, two rows at a time.
inline void score_tile(const float* tile, int n_rows, int d, const QueryQuad& quad, float scale, float* s) {
    const int padded = padded_to_blocks(d);
    const int n_whole = d / 8 * 8;
    for (int r = 0; r < n_rows; r += 2) {
        const float* first = tile + r * padded;
        const float* second = r + 1 < n_rows ? first + padded : first;
        F8 dots[8];
        for (F8& dot : dots) dot = zero8();
        const auto add = [&](int i, auto&& query) {
            const F8 a = load(first + i), b = load(second + i);
            for (int h = 0; h < kQuad; ++h) {
                const F8 x = query(quad.q[h] + i);
                dots[h] = fma(x, a, dots[h]);
                dots[kQuad + h] = fma(x, b, dots[kQuad + h]);
            }
        };
        for (int i = 0; i < n_whole; i += 8) add(i, [](const float* q) { return load(q); });
        if (n_whole < d) add(n_whole, [&](const float* q) { return load_first(q, d - n_whole); });
        float sums[8];
        store(sums, sum_each(dots) * set1(scale));
        for (int h = 0; h < kQuad; ++h) {
            s[h * kKvPageRows + r] = sums[h];
            if (r + 1 < n_rows) s[h * kKvPageRows + r + 1] = sums[kQuad + h];
        }
    }
}

/// Scores become weights exp(s − m), m the largest score so far; what was summed before is brought to m.
inline void weigh_scores(QueryQuad& quad, int padded) {
    const int n = quad.n_rows;
    for (int h = 0; h < kQuad; ++h) {
        float* s = quad.scores + h * kKvPageRows;
        for (int r = n; r % 8 != 0; ++r) s[r] = -__builtin_inff();
        F8 largest = load(s);
        for (int r = 8; r < n; r += 8) largest = max(largest, load(s + r));
        float lanes[8];
        store(lanes, largest);
        float m = lanes[0];
        for (int i = 1; i < 8; ++i) m = lanes[i] > m ? lanes[i] : m;
        const float old = quad.max[h];
        if (!(m > old)) m = old;
        F8 total = zero8();
        for (int r = 0; r < n; r += 8) {
            const F8 p = exp(load(s + r) - set1(m));
            store(s + r, p);
            total = total + p;
        }
        const float keep = first_lane(exp(set1(old - m)));
        quad.max[h] = m;
        quad.weight[h] = __builtin_fmaf(quad.weight[h], keep, sum(total));
        if (keep == 1.0f) continue;
        float* y = quad.sum + h * padded;
        for (int i = 0; i < padded; i += 8) store(y + i, load(y + i) * set1(keep));
    }
}

/// sum_h[i] += Σ_r weight[h][r] V[r][i] for 32 values i; rows of v are 32 floats apart.
inline void add_values(const float* v, QueryQuad& quad, int padded, int i) {
    const float* w = quad.scores;
    const int n = quad.n_rows;
    for (int j = 0; j < kKvBlock; j += kStep) {
        F8 low[kQuad], high[kQuad];
        for (int h = 0; h < kQuad; ++h) {
            const float* y = quad.sum + h * padded + i + j;
            low[h] = load(y);
            high[h] = load(y + 8);
        }
        for (int r = 0; r < n; ++r) {
            const float* row = v + r * kKvBlock + j;
            const F8 a = load(row), b = load(row + 8);
            for (int h = 0; h < kQuad; ++h) {
                const F8 x = set1(w[h * kKvPageRows + r]);
                low[h] = fma(x, a, low[h]);
                high[h] = fma(x, b, high[h]);
            }
        }
        for (int h = 0; h < kQuad; ++h) {
            float* y = quad.sum + h * padded + i + j;
            store(y, low[h]);
            store(y + 8, high[h]);
        }
    }
}

inline void attend_page(const KvStretch* stretches, int n_stretches, int d, QueryQuad* quads, int n_quads,
                        float* tile) {
    const float scale = static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(d)));
    const int padded = padded_to_blocks(d);
    const int n_blocks = padded / kKvBlock;
    int row = 0;  // of the page as the queries count
    for (int s = 0; s < n_stretches; ++s) {
        const KvStretch& stretch = stretches[s];
        const std::size_t row_bytes = stretch.row_bytes;
        for (int r = 0, n = 0; r < stretch.n_rows; r += n, row += n) {
            n = least(kTileRows, stretch.n_rows - r);
            const std::size_t at = static_cast<std::size_t>(r) * row_bytes;
            unpack_rows(stretch.type, stretch.k + at, row_bytes, n, 0, n_blocks, d, tile);
            // V is read by columns, which no prefetcher of the processor foresees.
            for (std::size_t i = 0; i < static_cast<std::size_t>(n) * row_bytes; i += 64)
                __builtin_prefetch(stretch.v + at + i, 0, 2);
            for (int q = 0; q < n_quads; ++q)
                if (quads[q].n_rows > row)
                    score_tile(tile, least(n, quads[q].n_rows - row), d, quads[q], scale,
                               quads[q].scores + row);
        }
    }
    for (int q = 0; q < n_quads; ++q)
        if (quads[q].n_rows > 0) weigh_scores(quads[q], padded);
    for (int block = 0; block < n_blocks; ++block) {
        float* to = tile;
        for (int s = 0; s < n_stretches; ++s) {
            const KvStretch& stretch = stretches[s];
            unpack_rows(stretch.type, stretch.v, stretch.row_bytes, stretch.n_rows, block, 1, d, to);
            to += stretch.n_rows * kKvBlock;
        }
        for (int q = 0; q < n_quads; ++q)
            if (quads[q].n_rows > 0) add_values(tile, quads[q], padded, block * kKvBlock);
    }
}

inline void merge_quad(const QueryQuad& more, int d, QueryQuad& into) {
    const int padded = padded_to_blocks(d);
    for (int h = 0; h < kQuad; ++h) {
        const float old = into.max[h], other = more.max[h];
        const float now = other > old ? other : old;
        const float keep = first_lane(exp(set1(old - now))), take = first_lane(exp(set1(other - now)));
        into.max[h] = now;
        into.weight[h] = __builtin_fmaf(into.weight[h], keep, more.weight[h] * take);
        float* y = into.sum + h * padded;
        const float* x = more.sum + h * padded;
        for (int i = 0; i < padded; i += 8)
            store(y + i, fma(load(y + i), set1(keep), load(x + i) * set1(take)));
    }
}

}  // namespace pantheon::kernels::PANTHEON_ISA

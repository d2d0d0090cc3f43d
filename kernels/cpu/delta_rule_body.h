// The recurrence of a Gated-Delta-Net head over some rows of its state; contract in leaves.h.
#pragma once

#include "kernels/cpu/leaves.h"
#include "kernels/cpu/math8.h"

namespace pantheon::kernels::PANTHEON_ISA {

inline F8 dot8(const float* a, const float* b, int n) {
    F8 total = zero8();
    for (int i = 0; i < n; i += 8) total = fma(load_some(a + i, n - i), load_some(b + i, n - i), total);
    return total;
}

/// One token, four rows (or fewer: rows beyond n repeat the last one and are not stored). A row is read twice
/// and written once: with decay γ, prediction and read-out before the write give
/// δ = β (v − γ s·k) and y = (γ s·q + δ k·q) / sqrt(d).
inline void advance_rows(const DeltaRuleSlice& slice, int first, int n, const float* q, const float* k,
                         const float* v, float decay, float beta, float kq, float scale, float* y) {
    const int d = slice.head_dim;
    float* rows[4];
    for (int r = 0; r < 4; ++r)
        rows[r] = slice.state + static_cast<std::int64_t>(first + (r < n ? r : n - 1)) * d;
    F8 dots[8];
    for (F8& dot : dots) dot = zero8();
    for (int i = 0; i < d; i += 8) {
        const F8 kk = load_some(k + i, d - i), qq = load_some(q + i, d - i);
        for (int r = 0; r < 4; ++r) {
            const F8 s = load_some(rows[r] + i, d - i);
            dots[r] = fma(s, kk, dots[r]);
            dots[4 + r] = fma(s, qq, dots[4 + r]);
        }
    }
    float sums[8], delta[4];
    store(sums, sum_each(dots));
    for (int r = 0; r < n; ++r) {
        delta[r] = beta * __builtin_fmaf(-decay, sums[r], v[r]);
        y[r] = __builtin_fmaf(delta[r], kq, decay * sums[4 + r]) * scale;
    }
    const F8 decay8 = set1(decay);
    for (int i = 0; i < d; i += 8) {
        const F8 kk = load_some(k + i, d - i);
        for (int r = 0; r < n; ++r)
            store_some(rows[r] + i, fma(set1(delta[r]), kk, decay8 * load_some(rows[r] + i, d - i)), d - i);
    }
}

/// advance_rows for four whole rows whose length is a multiple of eight: the same operations without the
/// tails.
inline void advance_four_rows(float* state, int d, const float* q, const float* k, const float* v,
                              float decay, float beta, float kq, float scale, float* y) {
    float *r0 = state, *r1 = r0 + d, *r2 = r1 + d, *r3 = r2 + d;
    F8 dots[8];
    for (F8& dot : dots) dot = zero8();
    for (int i = 0; i < d; i += 8) {
        const F8 kk = load(k + i), qq = load(q + i);
        const F8 a = load(r0 + i), b = load(r1 + i), c = load(r2 + i), e = load(r3 + i);
        dots[0] = fma(a, kk, dots[0]);
        dots[1] = fma(b, kk, dots[1]);
        dots[2] = fma(c, kk, dots[2]);
        dots[3] = fma(e, kk, dots[3]);
        dots[4] = fma(a, qq, dots[4]);
        dots[5] = fma(b, qq, dots[5]);
        dots[6] = fma(c, qq, dots[6]);
        dots[7] = fma(e, qq, dots[7]);
    }
    float sums[8], delta[4];
    store(sums, sum_each(dots));
    for (int r = 0; r < 4; ++r) {
        delta[r] = beta * __builtin_fmaf(-decay, sums[r], v[r]);
        y[r] = __builtin_fmaf(delta[r], kq, decay * sums[4 + r]) * scale;
    }
    const F8 decay8 = set1(decay);
    const F8 d0 = set1(delta[0]), d1 = set1(delta[1]), d2 = set1(delta[2]), d3 = set1(delta[3]);
    for (int i = 0; i < d; i += 8) {
        const F8 kk = load(k + i);
        store(r0 + i, fma(d0, kk, decay8 * load(r0 + i)));
        store(r1 + i, fma(d1, kk, decay8 * load(r1 + i)));
        store(r2 + i, fma(d2, kk, decay8 * load(r2 + i)));
        store(r3 + i, fma(d3, kk, decay8 * load(r3 + i)));
    }
}

inline void delta_rule(const DeltaRuleSlice& slice) {
    const int d = slice.head_dim;
    const float scale = static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(d)));
    for (std::int64_t t = 0; t < slice.n_tokens; ++t) {
        const float* q = slice.q + t * slice.qkv_stride;
        const float* k = slice.k + t * slice.qkv_stride;
        const float decay = first_lane(exp(set1(slice.g[t * slice.gate_stride])));
        const float beta = slice.beta[t * slice.gate_stride];
        const float kq = sum(dot8(k, q, d));
        for (int first = 0; first < slice.n_rows; first += 4) {
            const int n = slice.n_rows - first < 4 ? slice.n_rows - first : 4;
            if (n == 4 && d % 8 == 0) {
                advance_four_rows(slice.state + static_cast<std::int64_t>(first) * d, d, q, k,
                                  slice.v + t * slice.qkv_stride + first, decay, beta, kq, scale,
                                  slice.y + t * slice.y_stride + first);
                continue;
            }
            advance_rows(slice, first, n, q, k, slice.v + t * slice.qkv_stride + first, decay, beta, kq,
                         scale, slice.y + t * slice.y_stride + first);
        }
    }
}

}  // namespace pantheon::kernels::PANTHEON_ISA

// The recurrence of a Gated-Delta-Net head over some rows of its state; contract in leaves.h.
//
// With decay γ, prediction and read-out before the write give δ = β (v − γ s·k) and y = (γ s·q + δ k·q) /
// sqrt(d). One sweep over a row writes the state that a token leaves, γ s + δ k, and multiplies it with the
// next token's k and q, so that a row is read once and written once a token.
#pragma once

#include "kernels/cpu/leaves.h"
#include "kernels/cpu/math8.h"

namespace pantheon::kernels::PANTHEON_ISA {

inline F8 dot8(const float* a, const float* b, int n) {
    F8 total = zero8();
    for (int i = 0; i < n; i += 8) total = fma(load_some(a + i, n - i), load_some(b + i, n - i), total);
    return total;
}

inline void delta_rule_tokens(const float* q, const float* k, std::int64_t stride, int head_dim,
                              const float* g, const float* beta, std::int64_t gate_stride, int n,
                              DeltaRuleToken* tokens) {
    for (std::int64_t t = 0; t < n; ++t) {
        tokens[t].decay = first_lane(exp(set1(g[t * gate_stride])));
        tokens[t].beta = beta[t * gate_stride];
        tokens[t].kq = sum(dot8(k + t * stride, q + t * stride, head_dim));
    }
}

/// Four rows; rows beyond the last repeat it and are not stored.
struct FourRows {
    float* row[4];
    int n;
};

/// What a token leaves in four rows: row · decay + delta · k.
struct RowUpdate {
    float decay;
    const float* delta;  // [4]
    const float* k;
};

/// Writes an update (if has_update) and multiplies the rows with k and q (if has_products): lanes 0 … 3 of
/// the result are row · k, 4 … 7 row · q. is_whole: four rows whose length is a multiple of eight.
template <bool has_update, bool has_products, bool is_whole>
inline __attribute__((always_inline)) F8 sweep(const FourRows& rows, int d, const RowUpdate& update,
                                               const float* k, const float* q) {
    const auto read = [](const float* p, int n) { return is_whole ? load(p) : load_some(p, n); };
    F8 dots[8], delta[4], decay = zero8();
    for (F8& dot : dots) dot = zero8();
    if constexpr (has_update) {
        decay = set1(update.decay);
        for (int r = 0; r < 4; ++r) delta[r] = set1(update.delta[r]);
    }
    for (int i = 0; i < d; i += 8) {
        F8 kk = zero8(), qq = zero8(), last_k = zero8();
        if constexpr (has_products) kk = read(k + i, d - i), qq = read(q + i, d - i);
        if constexpr (has_update) last_k = read(update.k + i, d - i);
#pragma GCC unroll 4
        for (int r = 0; r < 4; ++r) {
            // A run's first sweep meets memory: the rows that come after this slice are sent for.
            if constexpr (!has_update)
                __builtin_prefetch(rows.row[r] + i + static_cast<std::int64_t>(DeltaRuleSlice::kMaxRows) * d,
                                   1);
            F8 s = read(rows.row[r] + i, d - i);
            if constexpr (has_update) {
                s = fma(delta[r], last_k, decay * s);
                if constexpr (is_whole)
                    store(rows.row[r] + i, s);
                else if (r < rows.n)
                    store_some(rows.row[r] + i, s, d - i);
            }
            if constexpr (has_products) {
                dots[r] = fma(s, kk, dots[r]);
                dots[4 + r] = fma(s, qq, dots[4 + r]);
            }
        }
    }
    if constexpr (has_products) return sum_each(dots);
    return zero8();
}

template <bool is_whole>
inline void delta_rule_of(const DeltaRuleSlice& slice) {
    constexpr int kMaxGroups = DeltaRuleSlice::kMaxRows / 4;
    const int d = slice.head_dim;
    const float scale = static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(d)));
    const int n_groups = (slice.n_rows + 3) / 4;
    FourRows groups[kMaxGroups];
    float delta[kMaxGroups][4];
    for (int i = 0; i < n_groups; ++i) {
        const int first = 4 * i;
        groups[i].n = slice.n_rows - first < 4 ? slice.n_rows - first : 4;
        for (int r = 0; r < 4; ++r)
            groups[i].row[r] =
                slice.state + static_cast<std::int64_t>(first + (r < groups[i].n ? r : groups[i].n - 1)) * d;
    }
    for (std::int64_t t = 0; t < slice.n_tokens; ++t) {
        const float* q = slice.q + t * slice.qkv_stride;
        const float* k = slice.k + t * slice.qkv_stride;
        const float* v = slice.v + t * slice.qkv_stride;
        float* y = slice.y + t * slice.y_stride;
        const DeltaRuleToken& token = slice.tokens[t];
        for (int i = 0; i < n_groups; ++i) {
            float sums[8];
            if (t == 0)
                store(sums, sweep<false, true, is_whole>(groups[i], d, {}, k, q));
            else
                store(sums,
                      sweep<true, true, is_whole>(
                          groups[i], d,
                          {slice.tokens[t - 1].decay, delta[i], slice.k + (t - 1) * slice.qkv_stride}, k, q));
            for (int r = 0; r < groups[i].n; ++r) {
                delta[i][r] = token.beta * __builtin_fmaf(-token.decay, sums[r], v[4 * i + r]);
                y[4 * i + r] = __builtin_fmaf(delta[i][r], token.kq, token.decay * sums[4 + r]) * scale;
            }
            for (int r = groups[i].n; r < 4; ++r) delta[i][r] = 0;
        }
    }
    const std::int64_t last = slice.n_tokens - 1;
    if (last < 0) return;
    for (int i = 0; i < n_groups; ++i)
        sweep<true, false, is_whole>(groups[i], d,
                                     {slice.tokens[last].decay, delta[i], slice.k + last * slice.qkv_stride},
                                     nullptr, nullptr);
}

inline void delta_rule(const DeltaRuleSlice& slice) {
    if (slice.n_rows % 4 == 0 && slice.head_dim % 8 == 0) return delta_rule_of<true>(slice);
    delta_rule_of<false>(slice);
}

}  // namespace pantheon::kernels::PANTHEON_ISA

// Functions of eight lanes, by polynomials: the same bits on every host, unlike the C library's.
#pragma once

#include "kernels/cpu/vec8.h"

namespace pantheon::kernels::PANTHEON_ISA {

/// e^x within 2 units in the last place; 0 from −104 down, infinite from 89 up, NaN for NaN.
inline F8 exp(F8 x) {
    constexpr float kRound = 12582912.0f;  // 1.5 · 2^23: adding it leaves no fraction bits
    x = max(set1(-105.0f), min(set1(89.0f), x));
    const F8 n = fma(x, set1(1.44269504f), set1(kRound)) - set1(kRound);
    // ln 2 in two parts; n times the first is exact.
    F8 r = fma(n, set1(-0.693359375f), x);
    r = fma(n, set1(2.12194440e-4f), r);
    // Taylor: |r| ≤ 0.35, so the first term left out is below 6e-9.
    F8 p = set1(1.0f / 5040);
    p = fma(p, r, set1(1.0f / 720));
    p = fma(p, r, set1(1.0f / 120));
    p = fma(p, r, set1(1.0f / 24));
    p = fma(p, r, set1(1.0f / 6));
    p = fma(p, r, set1(0.5f));
    p = fma(p, r, set1(1.0f));
    p = fma(p, r, set1(1.0f));
    return times_power_of_two(p, n);
}

inline F8 sigmoid(F8 x) {
    return set1(1.0f) / (set1(1.0f) + exp(zero8() - x));
}
inline F8 silu(F8 x) {
    return x / (set1(1.0f) + exp(zero8() - x));
}

/// Σ a[i]·b[i] in eight f64 sums, each product exact, added as a fixed tree.
inline double dot_in_f64(const float* a, const float* b, std::int64_t n) {
    double s[8] = {};
    std::int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int j = 0; j < 8; ++j) s[j] += static_cast<double>(a[i + j]) * static_cast<double>(b[i + j]);
    for (int j = 0; i < n; ++i, ++j) s[j] += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
}

}  // namespace pantheon::kernels::PANTHEON_ISA

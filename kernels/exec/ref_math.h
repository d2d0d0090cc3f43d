// The scalar functions of the reference kernels: computed in double and rounded once by the caller. Only
// *_ref.cpp files include this.
#pragma once

#include <cmath>
#include <cstdint>

namespace pantheon::kernels::ref {

/// Σ a[i]·b[i]. Each product is exact in double. Eight partial sums, element i in sum i mod 8, added as a
/// fixed tree: the compiler may vectorise, but the order is the same in every build.
inline double dot(const float* a, const float* b, std::int64_t n) {
    double s[8] = {};
    std::int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int j = 0; j < 8; ++j) s[j] += static_cast<double>(a[i + j]) * static_cast<double>(b[i + j]);
    for (int j = 0; i < n; ++i, ++j) s[j] += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
}

/// 1 / sqrt(mean(x²) + eps)
inline double inverse_rms(const float* x, std::int64_t n, double eps) {
    return 1.0 / std::sqrt(dot(x, x, n) / static_cast<double>(n) + eps);
}

inline double sigmoid(double x) {
    return 1.0 / (1.0 + std::exp(-x));
}
inline double silu(double x) {
    return x * sigmoid(x);
}
inline double softplus(double x) {
    return x > 20.0 ? x : std::log1p(std::exp(x));
}

}  // namespace pantheon::kernels::ref

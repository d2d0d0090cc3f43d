#include "kernels/cpu/f64_math.h"

#include <cstdint>
#include <cstring>

namespace pantheon::kernels::f64 {
namespace {

constexpr double kRound = 6755399441055744.0;  // 1.5 · 2^52: adding it leaves no fraction bits

double nearest(double x) {
    return (x + kRound) - kRound;
}

double power_of_two(int n) {  // −1022 … 1023
    const std::uint64_t bits = static_cast<std::uint64_t>(n + 1023) << 52;
    double f;
    std::memcpy(&f, &bits, sizeof f);
    return f;
}

// ln 2 and π/2 in parts: the first ones have trailing zeros, so that small multiples of them are exact.
constexpr double kLn2High = 6.93147180369123816490e-01, kLn2Low = 1.90821492927058770002e-10;
constexpr double kHalfPi1 = 1.57079632673412561417e+00, kHalfPi2 = 6.07710050630396597660e-11,
                 kHalfPi3 = 2.02226624879595063154e-21;

/// 2 atanh(s) = 2 (s + s³/3 + s⁵/5 …), |s| ≤ 0.172
double two_atanh(double s) {
    const double z = s * s;
    double p = 0;
    for (int k = 23; k >= 1; k -= 2) p = p * z + 1.0 / k;
    return 2 * s * p;
}

}  // namespace

double exp(double x) {
    if (x != x) return x;
    if (x < -745) return 0;
    if (x > 709.8) return __builtin_inf();
    const double n = nearest(x * 1.44269504088896340736);
    const double r = (x - n * kLn2High) - n * kLn2Low;
    double p = 1;  // Taylor by Horner, |r| ≤ 0.35
    for (int k = 14; k >= 1; --k) p = 1 + r / k * p;
    const int whole = static_cast<int>(n), half = whole / 2;
    return p * power_of_two(half) * power_of_two(whole - half);
}

double log(double x) {
    std::uint64_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    int exponent = static_cast<int>(bits >> 52 & 0x7FF) - 1023;
    bits = (bits & 0x000FFFFFFFFFFFFFu) | 0x3FF0000000000000u;
    double m;  // in [1, 2), then in [√½, √2)
    std::memcpy(&m, &bits, sizeof m);
    if (m > 1.4142135623730951) {
        m *= 0.5;
        ++exponent;
    }
    return two_atanh((m - 1) / (m + 1)) + exponent * kLn2Low + exponent * kLn2High;
}

double log1p(double x) {
    if (x < 0.4) return two_atanh(x / (2 + x));
    return log(1 + x);
}

SinCos sin_cos(double x) {
    const double n = nearest(x * 0.63661977236758134308);  // 2/π
    const double r = ((x - n * kHalfPi1) - n * kHalfPi2) - n * kHalfPi3;
    const double z = r * r;  // |r| ≤ π/4
    double s = 1, c = 1;     // Taylor by Horner
    for (int k = 8; k >= 1; --k) {
        s = 1 - z / (2 * k * (2 * k + 1)) * s;
        c = 1 - z / (2 * k * (2 * k - 1)) * c;
    }
    s *= r;
    switch (static_cast<std::int64_t>(n) & 3) {
        case 0:
            return {s, c};
        case 1:
            return {c, -s};
        case 2:
            return {-s, -c};
        default:
            return {-c, s};
    }
}

}  // namespace pantheon::kernels::f64

// Eight f32 lanes: the only arithmetic that the inner loops are written in. A file that is built for AVX2 or
// AVX-512 defines PANTHEON_ISA_AVX2 or PANTHEON_ISA_AVX512 before it includes this; every other one gets the
// same lanes as plain C++ with the same bits. Each build lives in a namespace of its own (avx2, avx512,
// scalar), so that the linker can never put one in the other's place; nothing here or in the bodies calls an
// inline function of the standard library, for the same reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(PANTHEON_ISA_AVX512)
#include <immintrin.h>
#define PANTHEON_ISA avx512
#define PANTHEON_HAS_AVX2
#elif defined(PANTHEON_ISA_AVX2)
#include <immintrin.h>
#define PANTHEON_ISA avx2
#define PANTHEON_HAS_AVX2
#else
#include "kernels/quant/dequantize.h"
#define PANTHEON_ISA scalar
#endif

namespace pantheon::kernels::PANTHEON_ISA {

#if defined(PANTHEON_HAS_AVX2)

struct F8 {
    __m256 v;
};

inline F8 set1(float x) {
    return {_mm256_set1_ps(x)};
}
inline F8 load(const float* p) {
    return {_mm256_loadu_ps(p)};
}
inline void store(float* p, F8 x) {
    _mm256_storeu_ps(p, x.v);
}
inline __m256i first_lanes(std::int64_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
/// The first n < 8 lanes; the others are 0.
inline F8 load_first(const float* p, std::int64_t n) {
    return {_mm256_maskload_ps(p, first_lanes(n))};
}
inline void store_first(float* p, F8 x, std::int64_t n) {
    _mm256_maskstore_ps(p, first_lanes(n), x.v);
}
/// Eight values at any address.
inline F8 load_f32(const std::byte* p) {
    return {_mm256_castsi256_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
inline F8 load_f16(const std::byte* p) {
    return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
/// Eight values as halves, rounded half to even.
inline void store_f16(std::uint16_t* p, F8 x) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(x.v, _MM_FROUND_TO_NEAREST_INT));
}
inline F8 load_bf16(const std::byte* p) {
    const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    return {_mm256_castsi256_ps(_mm256_slli_epi32(wide, 16))};
}
inline float half_at(const std::byte* p) {
    std::uint16_t h;
    std::memcpy(&h, p, sizeof h);
    return _cvtsh_ss(h);
}
inline F8 operator+(F8 a, F8 b) {
    return {_mm256_add_ps(a.v, b.v)};
}
inline F8 operator-(F8 a, F8 b) {
    return {_mm256_sub_ps(a.v, b.v)};
}
inline F8 operator*(F8 a, F8 b) {
    return {_mm256_mul_ps(a.v, b.v)};
}
inline F8 operator/(F8 a, F8 b) {
    return {_mm256_div_ps(a.v, b.v)};
}
/// a·b + c, rounded once.
inline F8 fma(F8 a, F8 b, F8 c) {
    return {_mm256_fmadd_ps(a.v, b.v, c.v)};
}
/// The larger; b where either is NaN.
inline F8 max(F8 a, F8 b) {
    return {_mm256_max_ps(a.v, b.v)};
}
/// The smaller; b where either is NaN.
inline F8 min(F8 a, F8 b) {
    return {_mm256_min_ps(a.v, b.v)};
}
/// x · 2^n for integral n in −160 … 130, in two steps, so that results may be subnormal or infinite.
inline F8 times_power_of_two(F8 x, F8 n) {
    const __m256i whole = _mm256_cvtps_epi32(n.v);
    const __m256i half = _mm256_srai_epi32(whole, 1);
    const __m256i rest = _mm256_sub_epi32(whole, half);
    const __m256i bias = _mm256_set1_epi32(127);
    const __m256 a = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23));
    const __m256 b = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23));
    return {_mm256_mul_ps(_mm256_mul_ps(x.v, a), b)};
}
/// Lane i is the sum of v[i]'s lanes: ((0+1)+(2+3)) + ((4+5)+(6+7)).
inline F8 sum_each(const F8* v) {
    const __m256 a = _mm256_hadd_ps(v[0].v, v[1].v), b = _mm256_hadd_ps(v[2].v, v[3].v);
    const __m256 c = _mm256_hadd_ps(v[4].v, v[5].v), d = _mm256_hadd_ps(v[6].v, v[7].v);
    const __m256 e = _mm256_hadd_ps(a, b), f = _mm256_hadd_ps(c, d);
    return {_mm256_add_ps(_mm256_permute2f128_ps(e, f, 0x20), _mm256_permute2f128_ps(e, f, 0x31))};
}

#else

struct F8 {
    float v[8];
};

template <class Lane>
inline F8 each_lane(Lane lane) {
    F8 y;
    for (int i = 0; i < 8; ++i) y.v[i] = lane(i);
    return y;
}
inline F8 set1(float x) {
    return each_lane([&](int) { return x; });
}
inline F8 load(const float* p) {
    F8 y;
    std::memcpy(y.v, p, sizeof y.v);
    return y;
}
inline void store(float* p, F8 x) {
    std::memcpy(p, x.v, sizeof x.v);
}
inline F8 load_f32(const std::byte* p) {
    F8 y;
    std::memcpy(y.v, p, sizeof y.v);
    return y;
}
inline F8 load_first(const float* p, std::int64_t n) {
    return each_lane([&](int i) { return i < n ? p[i] : 0.0f; });
}
inline void store_first(float* p, F8 x, std::int64_t n) {
    for (int i = 0; i < n; ++i) p[i] = x.v[i];
}
inline float half_at(const std::byte* p) {
    std::uint16_t h;
    std::memcpy(&h, p, sizeof h);
    return half_to_float(h);
}
inline F8 load_f16(const std::byte* p) {
    return each_lane([&](int i) { return half_at(p + 2 * i); });
}
inline void store_f16(std::uint16_t* p, F8 x) {
    for (int i = 0; i < 8; ++i) p[i] = float_to_half(x.v[i]);
}
inline F8 load_bf16(const std::byte* p) {
    return each_lane([&](int i) {
        std::uint16_t high;
        std::memcpy(&high, p + 2 * i, sizeof high);
        const std::uint32_t bits = static_cast<std::uint32_t>(high) << 16;
        float f;
        std::memcpy(&f, &bits, sizeof f);
        return f;
    });
}
inline F8 operator+(F8 a, F8 b) {
    return each_lane([&](int i) { return a.v[i] + b.v[i]; });
}
inline F8 operator-(F8 a, F8 b) {
    return each_lane([&](int i) { return a.v[i] - b.v[i]; });
}
inline F8 operator*(F8 a, F8 b) {
    return each_lane([&](int i) { return a.v[i] * b.v[i]; });
}
inline F8 operator/(F8 a, F8 b) {
    return each_lane([&](int i) { return a.v[i] / b.v[i]; });
}
inline F8 fma(F8 a, F8 b, F8 c) {
    return each_lane([&](int i) { return __builtin_fmaf(a.v[i], b.v[i], c.v[i]); });
}
inline F8 max(F8 a, F8 b) {
    return each_lane([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}
inline F8 min(F8 a, F8 b) {
    return each_lane([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
}
inline float power_of_two(int n) {
    const std::uint32_t bits = static_cast<std::uint32_t>(n + 127) << 23;
    float f;
    std::memcpy(&f, &bits, sizeof f);
    return f;
}
inline F8 times_power_of_two(F8 x, F8 n) {
    return each_lane([&](int i) {
        if (n.v[i] != n.v[i]) return n.v[i];
        const int whole = static_cast<int>(n.v[i]);
        const int half = whole >> 1;
        return x.v[i] * power_of_two(half) * power_of_two(whole - half);
    });
}
inline F8 sum_each(const F8* v) {
    return each_lane([&](int i) {
        const float* s = v[i].v;
        return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
    });
}

#endif

inline F8 zero8() {
    return set1(0.0f);
}
/// Eight values, or the last few of an array.
inline F8 load_some(const float* p, std::int64_t n) {
    return n >= 8 ? load(p) : load_first(p, n);
}
inline void store_some(float* p, F8 x, std::int64_t n) {
    if (n >= 8) return store(p, x);
    store_first(p, x, n);
}
inline float first_lane(F8 x) {
    float lanes[8];
    store(lanes, x);
    return lanes[0];
}
/// The sum of the lanes, in the order of sum_each.
inline float sum(F8 x) {
    float s[8];
    store(s, x);
    return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
}

}  // namespace pantheon::kernels::PANTHEON_ISA

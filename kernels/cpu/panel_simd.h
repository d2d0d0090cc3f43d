// A panel register: one 32-bit lane for each row of a panel. AVX2: 8 rows, products of bytes are added in 16
// bits; AVX-512 with VNNI: 16 rows, products are added in 32 bits. Include only where one of the two is
// defined.
#pragma once

#include "kernels/cpu/vec8.h"

#if defined(PANTHEON_HAS_AVX2)

namespace pantheon::kernels::PANTHEON_ISA {

/// Four activations, as one lane.
inline std::int32_t four_at(const std::int8_t* a) {
    std::int32_t v;
    std::memcpy(&v, a, sizeof v);
    return v;
}
/// Two sums of activations, as one lane.
inline std::int32_t two_at(const std::int16_t* sums) {
    std::int32_t v;
    std::memcpy(&v, sums, sizeof v);
    return v;
}
#if defined(PANTHEON_ISA_AVX512)

constexpr int kPanelRows = 16;
constexpr int kPanelColumns = 8;  // a pass: what the registers hold
using Bytes = __m512i;
using Ints = __m512i;
using Floats = __m512;

/// One load, whatever is done with the value: the compiler would rather read memory again for each use, and
/// lines that are still on their way from memory take badly to that.
inline Bytes load_bytes(const void* p) {
    Bytes v = _mm512_loadu_si512(p);
    asm("" : "+v"(v));
    return v;
}
inline void store_bytes(void* p, Bytes v) {
    _mm512_storeu_si512(p, v);
}
inline Bytes all_bytes(int v) {
    return _mm512_set1_epi8(static_cast<char>(v));
}
inline Ints zero_ints() {
    return _mm512_setzero_si512();
}
inline Ints all_ints(std::int32_t v) {
    return _mm512_set1_epi32(v);
}
inline Floats zero_floats() {
    return _mm512_setzero_ps();
}
inline Floats all_floats(float v) {
    return _mm512_set1_ps(v);
}
inline Bytes both(Bytes a, Bytes b) {
    return _mm512_and_si512(a, b);
}
inline Bytes either(Bytes a, Bytes b) {
    return _mm512_or_si512(a, b);
}
template <int n>
inline Bytes right(Bytes v) {
    return _mm512_srli_epi16(v, n);
}
template <int n>
inline Bytes left(Bytes v) {
    return _mm512_slli_epi16(v, n);
}
inline Bytes minus_bytes(Bytes a, Bytes b) {
    return _mm512_sub_epi8(a, b);
}
/// Each byte of table (16 of them) that an index names.
inline Bytes look_up(const std::int8_t* table, Bytes indices) {
    const __m128i t = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(t), indices);
}
/// 2 · kPanelRows bytes, first the whole, then the same two bits up: [v, v « 2 bits to the right].
inline Bytes half_and_shifted(const void* p) {
    const __m256i v = _mm256_loadu_si256(static_cast<const __m256i*>(p));
    return _mm512_inserti64x4(_mm512_castsi256_si512(v), _mm256_srli_epi16(v, 2), 1);
}

/// Of two neighbouring groups, for each row: a lane is (even, odd) in 16 bits each.
struct ScalePair {
    Ints v;
};
inline ScalePair unsigned_pair(const void* p) {
    return {_mm512_cvtepu8_epi16(_mm256_loadu_si256(static_cast<const __m256i*>(p)))};
}
inline ScalePair signed_pair(const void* p) {
    return {_mm512_cvtepi8_epi16(_mm256_loadu_si256(static_cast<const __m256i*>(p)))};
}
inline Ints even_scale(ScalePair pair) {
    return _mm512_srai_epi32(_mm512_slli_epi32(pair.v, 16), 16);
}
inline Ints odd_scale(ScalePair pair) {
    return _mm512_srai_epi32(pair.v, 16);
}
/// total + even · the first sum + odd · the second.
inline Ints add_pair_product(Ints total, ScalePair pair, std::int32_t two_sums) {
    return _mm512_dpwssd_epi32(total, pair.v, _mm512_set1_epi32(two_sums));
}

/// Sums of products before they are weighed; here they cannot overflow.
constexpr bool kHasWideSums = true;
/// Four activations in every lane, loaded once for all panels that meet them.
inline Bytes broadcast_four(const std::int8_t* a) {
    Bytes four = _mm512_set1_epi32(four_at(a));
    asm("" : "+v"(four));
    return four;
}
inline Ints add_products(Ints sums, Bytes w, Bytes four) {
    return _mm512_dpbusd_epi32(sums, w, four);
}
inline Ints weighed(Ints sums, Ints scale) {
    return _mm512_mullo_epi32(sums, scale);
}
inline Ints add_ints(Ints a, Ints b) {
    return _mm512_add_epi32(a, b);
}
inline Ints minus_ints(Ints a, Ints b) {
    return _mm512_sub_epi32(a, b);
}
template <int n>
inline Ints left_ints(Ints v) {
    return _mm512_slli_epi32(v, n);
}
inline Bytes flip_signs(Bytes v) {
    return _mm512_xor_si512(v, _mm512_set1_epi8(static_cast<char>(0x80)));
}

inline Floats load_halves(const void* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(p)));
}
inline Floats to_floats(Ints v) {
    return _mm512_cvtepi32_ps(v);
}
inline Floats times(Floats a, Floats b) {
    return _mm512_mul_ps(a, b);
}
inline Floats plus_product(Floats a, Floats b, Floats c) {
    return _mm512_fmadd_ps(a, b, c);
}
inline Floats minus_product(Floats a, Floats b, Floats c) {
    return _mm512_fnmadd_ps(a, b, c);
}
inline void store_floats(float* p, Floats v, int n) {
    _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << n) - 1u), v);
}

#else

constexpr int kPanelRows = 8;
constexpr int kPanelColumns = 4;
using Bytes = __m256i;
using Ints = __m256i;
using Floats = __m256;

inline Bytes load_bytes(const void* p) {
    Bytes v = _mm256_loadu_si256(static_cast<const __m256i*>(p));
    asm("" : "+x"(v));
    return v;
}
inline void store_bytes(void* p, Bytes v) {
    _mm256_storeu_si256(static_cast<__m256i*>(p), v);
}
inline Bytes all_bytes(int v) {
    return _mm256_set1_epi8(static_cast<char>(v));
}
inline Ints zero_ints() {
    return _mm256_setzero_si256();
}
inline Floats zero_floats() {
    return _mm256_setzero_ps();
}
inline Floats all_floats(float v) {
    return _mm256_set1_ps(v);
}
inline Bytes both(Bytes a, Bytes b) {
    return _mm256_and_si256(a, b);
}
inline Bytes either(Bytes a, Bytes b) {
    return _mm256_or_si256(a, b);
}
template <int n>
inline Bytes right(Bytes v) {
    return _mm256_srli_epi16(v, n);
}
template <int n>
inline Bytes left(Bytes v) {
    return _mm256_slli_epi16(v, n);
}
inline Bytes minus_bytes(Bytes a, Bytes b) {
    return _mm256_sub_epi8(a, b);
}
inline Bytes look_up(const std::int8_t* table, Bytes indices) {
    const __m128i t = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(t), indices);
}
inline Bytes half_and_shifted(const void* p) {
    const __m128i v = _mm_loadu_si128(static_cast<const __m128i*>(p));
    return _mm256_setr_m128i(v, _mm_srli_epi16(v, 2));
}

struct ScalePair {
    Ints v;
};
inline ScalePair unsigned_pair(const void* p) {
    return {_mm256_cvtepu8_epi16(_mm_loadu_si128(static_cast<const __m128i*>(p)))};
}
inline ScalePair signed_pair(const void* p) {
    return {_mm256_cvtepi8_epi16(_mm_loadu_si128(static_cast<const __m128i*>(p)))};
}
/// A scale for each of the two 16-bit sums of a lane.
inline Ints even_scale(ScalePair pair) {
    return _mm256_shuffle_epi8(pair.v, _mm256_setr_epi8(0, 1, 0, 1, 4, 5, 4, 5, 8, 9, 8, 9, 12, 13, 12, 13, 0,
                                                        1, 0, 1, 4, 5, 4, 5, 8, 9, 8, 9, 12, 13, 12, 13));
}
inline Ints odd_scale(ScalePair pair) {
    return _mm256_shuffle_epi8(
        pair.v, _mm256_setr_epi8(2, 3, 2, 3, 6, 7, 6, 7, 10, 11, 10, 11, 14, 15, 14, 15, 2, 3, 2, 3, 6, 7, 6,
                                 7, 10, 11, 10, 11, 14, 15, 14, 15));
}
inline Ints add_pair_product(Ints total, ScalePair pair, std::int32_t two_sums) {
    return _mm256_add_epi32(total, _mm256_madd_epi16(pair.v, _mm256_set1_epi32(two_sums)));
}

/// Sums of products are 16 bits wide: the caller weighs them before they can overflow.
constexpr bool kHasWideSums = false;
inline Ints add_products(Ints sums, Bytes w, Bytes activations) {
    return _mm256_add_epi16(sums, _mm256_maddubs_epi16(w, activations));
}
inline Ints add_products(Ints sums, Bytes w, std::int32_t four) {
    return add_products(sums, w, _mm256_set1_epi32(four));
}
/// Four activations in every lane.
inline Bytes broadcast_four(const std::int8_t* a) {
    return _mm256_set1_epi32(four_at(a));
}
/// The products of signed weights: the sign moves to the activation, which is never −128.
inline Ints signed_products(Bytes w, std::int32_t four) {
    return _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(_mm256_set1_epi32(four), w));
}
inline Ints weighed(Ints sums, Ints scale) {
    return _mm256_madd_epi16(sums, scale);
}
inline Ints add_ints(Ints a, Ints b) {
    return _mm256_add_epi32(a, b);
}
inline Ints minus_ints(Ints a, Ints b) {
    return _mm256_sub_epi32(a, b);
}
template <int n>
inline Ints left_ints(Ints v) {
    return _mm256_slli_epi32(v, n);
}

inline Floats load_halves(const void* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(p)));
}
inline Floats to_floats(Ints v) {
    return _mm256_cvtepi32_ps(v);
}
inline Floats times(Floats a, Floats b) {
    return _mm256_mul_ps(a, b);
}
inline Floats plus_product(Floats a, Floats b, Floats c) {
    return _mm256_fmadd_ps(a, b, c);
}
inline Floats minus_product(Floats a, Floats b, Floats c) {
    return _mm256_fnmadd_ps(a, b, c);
}
inline void store_floats(float* p, Floats v, int n) {
    store_some(p, {v}, n);
}
/// Compilers turn the chain of 16-bit additions into a tree and spill it; this holds it in order.
inline void keep_in_register(Ints& v) {
    asm("" : "+x"(v));
}

#endif

}  // namespace pantheon::kernels::PANTHEON_ISA

#endif

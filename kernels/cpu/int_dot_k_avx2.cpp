// Needs AVX2, FMA and F16C; rows of whole blocks of 256, no alignment.
#define PANTHEON_ISA_AVX2
#include "kernels/cpu/block_ints_k.h"
#include "kernels/cpu/int_dot_avx2.h"

namespace pantheon::kernels::avx2 {
namespace {

__m256i low_nibbles(__m256i v) {
    return _mm256_and_si256(v, _mm256_set1_epi8(15));
}
__m256i high_nibbles(__m256i v) {
    return low_nibbles(_mm256_srli_epi16(v, 4));
}

/// Bit `from` of every byte, moved to bit `to`; the other bits 0.
template <int from, int to>
__m256i move_bit(__m256i v) {
    const __m256i moved = from <= to ? _mm256_slli_epi16(v, to - from) : _mm256_srli_epi16(v, from - to);
    return _mm256_and_si256(moved, _mm256_set1_epi8(static_cast<char>(1 << to)));
}

/// Eight 6-bit scales and mins from 12 bytes, four at a time in 32-bit words.
void load_scale_min(const std::byte* packed, Block256& block) {
    const std::uint32_t a = u32_at(packed), b = u32_at(packed + 4), c = u32_at(packed + 8);
    const std::uint32_t scale_high = (c & 0x0F0F0F0Fu) | (a >> 6 & 0x03030303u) << 4;
    const std::uint32_t min_high = (c >> 4 & 0x0F0F0F0Fu) | (b >> 6 & 0x03030303u) << 4;
    const __m128i scales = _mm_cvtsi64_si128(
        static_cast<std::int64_t>((a & 0x3F3F3F3Fu) | static_cast<std::uint64_t>(scale_high) << 32));
    const __m128i mins = _mm_cvtsi64_si128(
        static_cast<std::int64_t>((b & 0x3F3F3F3Fu) | static_cast<std::uint64_t>(min_high) << 32));
    spread_scales32(_mm_cvtepu8_epi16(scales), block);
    block.mins = _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(mins, mins));
}

struct LoadQ2K : Q2K {
    static constexpr bool kIsSigned = false;
    static constexpr int kOffsetBits = 0;
    static void load(const std::byte* p, Block256& block, float& d, float& dmin) {
        const __m128i packed = load16(p), low = _mm_set1_epi8(15);
        block.scales = _mm256_cvtepu8_epi16(_mm_and_si128(packed, low));
        block.mins = _mm256_cvtepu8_epi16(_mm_and_si128(_mm_srli_epi16(packed, 4), low));
        spread_scales16(block);
        const __m256i mask = _mm256_set1_epi8(3);
        for (int n = 0; n < 2; ++n) {
            const __m256i q = load32(p + 16 + 32 * n);
            block.w[4 * n] = _mm256_and_si256(q, mask);
            block.w[4 * n + 1] = _mm256_and_si256(_mm256_srli_epi16(q, 2), mask);
            block.w[4 * n + 2] = _mm256_and_si256(_mm256_srli_epi16(q, 4), mask);
            block.w[4 * n + 3] = _mm256_and_si256(_mm256_srli_epi16(q, 6), mask);
        }
        d = half_at(p + 80);
        dmin = half_at(p + 82);
    }
};

struct LoadQ3K : Q3K {
    static constexpr bool kIsSigned = false;
    static constexpr int kOffsetBits = 2;
    static void load(const std::byte* p, Block256& block, float& d, float&) {
        const std::byte* scales = p + 96;
        const std::uint32_t a = u32_at(scales), b = u32_at(scales + 4), high = u32_at(scales + 8);
        const auto word = [&](std::uint32_t low, int shift) {
            return static_cast<int>((low & 0x0F0F0F0Fu) | (high >> shift & 0x03030303u) << 4);
        };
        const __m128i packed = _mm_setr_epi32(word(a, 0), word(b, 2), word(a >> 4, 4), word(b >> 4, 6));
        block.scales = _mm256_cvtepi8_epi16(_mm_sub_epi8(packed, _mm_set1_epi8(32)));
        spread_scales16(block);
        const __m256i mask = _mm256_set1_epi8(3), h = load32(p);
        const __m256i first = load32(p + 32), second = load32(p + 64);
        block.w[0] = _mm256_or_si256(_mm256_and_si256(first, mask), move_bit<0, 2>(h));
        block.w[1] = _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(first, 2), mask), move_bit<1, 2>(h));
        block.w[2] = _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(first, 4), mask), move_bit<2, 2>(h));
        block.w[3] = _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(first, 6), mask), move_bit<3, 2>(h));
        block.w[4] = _mm256_or_si256(_mm256_and_si256(second, mask), move_bit<4, 2>(h));
        block.w[5] = _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(second, 2), mask), move_bit<5, 2>(h));
        block.w[6] = _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(second, 4), mask), move_bit<6, 2>(h));
        block.w[7] = _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(second, 6), mask), move_bit<7, 2>(h));
        d = half_at(p + 108);
    }
};

struct LoadQ4K : Q4K {
    static constexpr bool kIsSigned = false;
    static constexpr int kOffsetBits = 0;
    static void load(const std::byte* p, Block256& block, float& d, float& dmin) {
        load_scale_min(p + 4, block);
        for (int i = 0; i < 4; ++i) {
            const __m256i q = load32(p + 16 + 32 * i);
            block.w[2 * i] = low_nibbles(q);
            block.w[2 * i + 1] = high_nibbles(q);
        }
        d = half_at(p);
        dmin = half_at(p + 2);
    }
};

struct LoadQ5K : Q5K {
    static constexpr bool kIsSigned = false;
    static constexpr int kOffsetBits = 0;
    static void load(const std::byte* p, Block256& block, float& d, float& dmin) {
        load_scale_min(p + 4, block);
        const __m256i h = load32(p + 16);
        const __m256i q0 = load32(p + 48), q1 = load32(p + 80), q2 = load32(p + 112), q3 = load32(p + 144);
        block.w[0] = _mm256_or_si256(low_nibbles(q0), move_bit<0, 4>(h));
        block.w[1] = _mm256_or_si256(high_nibbles(q0), move_bit<1, 4>(h));
        block.w[2] = _mm256_or_si256(low_nibbles(q1), move_bit<2, 4>(h));
        block.w[3] = _mm256_or_si256(high_nibbles(q1), move_bit<3, 4>(h));
        block.w[4] = _mm256_or_si256(low_nibbles(q2), move_bit<4, 4>(h));
        block.w[5] = _mm256_or_si256(high_nibbles(q2), move_bit<5, 4>(h));
        block.w[6] = _mm256_or_si256(low_nibbles(q3), move_bit<6, 4>(h));
        block.w[7] = _mm256_or_si256(high_nibbles(q3), move_bit<7, 4>(h));
        d = half_at(p);
        dmin = half_at(p + 2);
    }
};

struct LoadQ6K : Q6K {
    static constexpr bool kIsSigned = false;
    static constexpr int kOffsetBits = 5;
    static void load(const std::byte* p, Block256& block, float& d, float&) {
        block.scales = _mm256_cvtepi8_epi16(load16(p + 192));
        spread_scales16(block);
        const __m256i mask = _mm256_set1_epi8(0x30);
        for (int n = 0; n < 2; ++n) {
            const __m256i even = load32(p + 64 * n), uneven = load32(p + 64 * n + 32);
            const __m256i h = load32(p + 128 + 32 * n);
            block.w[4 * n] =
                _mm256_or_si256(low_nibbles(even), _mm256_and_si256(_mm256_slli_epi16(h, 4), mask));
            block.w[4 * n + 1] =
                _mm256_or_si256(low_nibbles(uneven), _mm256_and_si256(_mm256_slli_epi16(h, 2), mask));
            block.w[4 * n + 2] = _mm256_or_si256(high_nibbles(even), _mm256_and_si256(h, mask));
            block.w[4 * n + 3] =
                _mm256_or_si256(high_nibbles(uneven), _mm256_and_si256(_mm256_srli_epi16(h, 2), mask));
        }
        d = half_at(p + 208);
    }
};

}  // namespace

DotRows* dot_rows_k(WeightType type) {
    switch (type) {
        case WeightType::q2_k:
            return int_dot_rows_of<Tile256<LoadQ2K>>;
        case WeightType::q3_k:
            return int_dot_rows_of<Tile256<LoadQ3K>>;
        case WeightType::q4_k:
            return int_dot_rows_of<Tile256<LoadQ4K>>;
        case WeightType::q5_k:
            return int_dot_rows_of<Tile256<LoadQ5K>>;
        case WeightType::q6_k:
            return int_dot_rows_of<Tile256<LoadQ6K>>;
        default:
            return nullptr;
    }
}

}  // namespace pantheon::kernels::avx2

// Needs AVX2, FMA and F16C; rows of whole blocks of 32, no alignment.
#define PANTHEON_ISA_AVX2
#include "kernels/cpu/int_dot_avx2.h"

namespace pantheon::kernels::avx2 {
namespace {

/// 32 nibbles of 16 bytes: the low ones, then the high ones.
__m256i nibbles(const std::byte* p) {
    const __m128i v = load16(p);
    return _mm256_and_si256(_mm256_setr_m128i(v, _mm_srli_epi16(v, 4)), _mm256_set1_epi8(15));
}

/// 16 in byte i where bit i is set, else 0.
__m256i fifth_bits(const std::byte* p) {
    const __m256i words = _mm256_set1_epi32(static_cast<int>(u32_at(p)));
    const __m256i copied = _mm256_shuffle_epi8(
        words, _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303));
    const __m256i bit = _mm256_set1_epi64x(static_cast<std::int64_t>(0x8040201008040201u));
    const __m256i is_set = _mm256_cmpeq_epi8(_mm256_and_si256(copied, bit), bit);
    return _mm256_and_si256(is_set, _mm256_set1_epi8(16));
}

__m256i look_up(const std::int8_t* levels, __m256i indices) {
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(load16(levels)), indices);
}

struct LoadQ8_0 : Q8_0 {
    static __m256i load(const std::byte* p, float& d, float&) {
        d = half_at(p);
        return load32(p + 2);
    }
};
struct LoadQ4_0 : Q4_0 {
    static __m256i load(const std::byte* p, float& d, float&) {
        d = half_at(p);
        return _mm256_sub_epi8(nibbles(p + 2), _mm256_set1_epi8(8));
    }
};
struct LoadQ4_1 : Q4_1 {
    static __m256i load(const std::byte* p, float& d, float& m) {
        d = half_at(p);
        m = half_at(p + 2);
        return nibbles(p + 4);
    }
};
struct LoadQ5_0 : Q5_0 {
    static __m256i load(const std::byte* p, float& d, float&) {
        d = half_at(p);
        return _mm256_sub_epi8(_mm256_or_si256(nibbles(p + 6), fifth_bits(p + 2)), _mm256_set1_epi8(16));
    }
};
struct LoadQ5_1 : Q5_1 {
    static __m256i load(const std::byte* p, float& d, float& m) {
        d = half_at(p);
        m = half_at(p + 2);
        return _mm256_or_si256(nibbles(p + 8), fifth_bits(p + 4));
    }
};
struct LoadIq4Nl : Iq4Nl {
    static __m256i load(const std::byte* p, float& d, float&) {
        d = half_at(p);
        return look_up(kIq4Levels, nibbles(p + 2));
    }
};
struct LoadMxfp4 : Mxfp4 {
    static __m256i load(const std::byte* p, float& d, float&) {
        d = mxfp4_scale(byte_at(p));
        return look_up(kFp4Doubled, nibbles(p + 1));
    }
};

}  // namespace

DotRows* dot_rows_legacy(WeightType type) {
    switch (type) {
        case WeightType::q4_0:
            return int_dot_rows_of<Tile32<LoadQ4_0>>;
        case WeightType::q4_1:
            return int_dot_rows_of<Tile32<LoadQ4_1>>;
        case WeightType::q5_0:
            return int_dot_rows_of<Tile32<LoadQ5_0>>;
        case WeightType::q5_1:
            return int_dot_rows_of<Tile32<LoadQ5_1>>;
        case WeightType::q8_0:
            return int_dot_rows_of<Tile32<LoadQ8_0>>;
        case WeightType::iq4_nl:
            return int_dot_rows_of<Tile32<LoadIq4Nl>>;
        case WeightType::mxfp4:
            return int_dot_rows_of<Tile32<LoadMxfp4>>;
        default:
            return nullptr;
    }
}

}  // namespace pantheon::kernels::avx2

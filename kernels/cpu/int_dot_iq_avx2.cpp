// Needs AVX2, FMA and F16C; rows of whole blocks of 256, no alignment. The codebook types are unpacked to
// bytes in L1 by the plain code of block_ints_iq.h, eight values at a time, and multiplied from there.
#define PANTHEON_ISA_AVX2
#include "kernels/cpu/block_ints_iq.h"
#include "kernels/cpu/int_dot_avx2.h"

namespace pantheon::kernels::avx2 {
namespace {

template <class Type>
struct LoadCodebook : Type {
    static constexpr bool kIsSigned = true;
    static constexpr int kOffsetBits = 0;
    static void load(const std::byte* p, Block256& block, float& d, float&) {
        Ints256 ints;
        Type::unpack(p, iq_grids(), ints);
        for (int k = 0; k < 8; ++k) block.w[k] = load32(ints.w + 32 * k);
        block.scales = load32(ints.scale);
        spread_scales16(block);
        d = ints.d;
    }
};

struct LoadIq4Xs : Iq4Xs {
    static constexpr bool kIsSigned = true;
    static constexpr int kOffsetBits = 0;
    static void load(const std::byte* p, Block256& block, float& d, float&) {
        // Eight low nibbles from 4 bytes, eight high pairs of bits from 2.
        const std::uint32_t low = u32_at(p + 4);
        const unsigned high = u16_at(p + 2);
        alignas(16) std::int16_t scales[8];
        for (int g = 0; g < 8; ++g)
            scales[g] = to_i16(static_cast<int>((low >> 4 * g & 15u) | (high >> 2 * g & 3u) << 4) - 32);
        spread_scales32(load16(scales), block);
        const __m256i levels = _mm256_broadcastsi128_si256(load16(kIq4Levels));
        const __m256i mask = _mm256_set1_epi8(15);
        for (int g = 0; g < 8; ++g) {
            const __m128i q = load16(p + 8 + 16 * g);
            const __m256i indices = _mm256_and_si256(_mm256_setr_m128i(q, _mm_srli_epi16(q, 4)), mask);
            block.w[g] = _mm256_shuffle_epi8(levels, indices);
        }
        d = half_at(p);
    }
};

}  // namespace

DotRows* dot_rows_iq(WeightType type) {
    switch (type) {
        case WeightType::iq2_xxs:
            return int_dot_rows_of<Tile256<LoadCodebook<Iq2Xxs>>>;
        case WeightType::iq2_xs:
            return int_dot_rows_of<Tile256<LoadCodebook<Iq2Xs>>>;
        case WeightType::iq2_s:
            return int_dot_rows_of<Tile256<LoadCodebook<Iq2S>>>;
        case WeightType::iq3_xxs:
            return int_dot_rows_of<Tile256<LoadCodebook<Iq3Xxs>>>;
        case WeightType::iq3_s:
            return int_dot_rows_of<Tile256<LoadCodebook<Iq3S>>>;
        case WeightType::iq1_s:
            return int_dot_rows_of<Tile256<LoadCodebook<Iq1S>>>;
        case WeightType::iq1_m:
            return int_dot_rows_of<Tile256<LoadCodebook<Iq1M>>>;
        case WeightType::iq4_xs:
            return int_dot_rows_of<Tile256<LoadIq4Xs>>;
        default:
            return nullptr;
    }
}

DotRows* int_dot_rows(WeightType type) {
    if (DotRows* found = dot_rows_k(type)) return found;
    if (DotRows* found = dot_rows_legacy(type)) return found;
    return dot_rows_iq(type);
}

}  // namespace pantheon::kernels::avx2

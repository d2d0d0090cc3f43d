// Tiles of integer products with AVX2. A loader turns a weight block into registers; the tile multiplies
// bytes, weighs the sums of each sixteen, and adds whole blocks in f32. Include only where PANTHEON_ISA_AVX2
// is defined.
#pragma once

#include "kernels/cpu/block_ints.h"
#include "kernels/cpu/dot_tiles.h"

#if defined(PANTHEON_HAS_AVX2)

namespace pantheon::kernels::avx2 {

inline __m256i load32(const void* p) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}
inline __m128i load16(const void* p) {
    return _mm_loadu_si128(static_cast<const __m128i*>(p));
}

/// Lane i is the sum of v[i]'s lanes.
inline __m256i sum_each_i32(const __m256i* v) {
    const __m256i a = _mm256_hadd_epi32(v[0], v[1]), b = _mm256_hadd_epi32(v[2], v[3]);
    const __m256i c = _mm256_hadd_epi32(v[4], v[5]), d = _mm256_hadd_epi32(v[6], v[7]);
    const __m256i e = _mm256_hadd_epi32(a, b), f = _mm256_hadd_epi32(c, d);
    return _mm256_add_epi32(_mm256_permute2x128_si256(e, f, 0x20), _mm256_permute2x128_si256(e, f, 0x31));
}

/// A block of 256 in registers. Bytes of w times activations fit 16 bits: |w| ≤ 128 where signed, ≤ 127 where
/// not. Signed weights: the sign moves to the activation (which is never −128). Unsigned weights: the value
/// is w − 2^kOffsetBits (no offset for 0), paid for through the activations' sums.
struct Block256 {
    __m256i w[8];
    __m256i scale[8];  // of each chunk's two sixteens, one a half
    __m256i scales;    // all sixteen
    __m256i mins;      // all sixteen
};

/// scales[2k] to the low half and scales[2k + 1] to the high half of scale[k].
inline void spread_scales16(Block256& block) {
    const __m256i low = _mm256_permute4x64_epi64(block.scales, 0x44);
    const __m256i high = _mm256_permute4x64_epi64(block.scales, 0xEE);
    for (int k = 0; k < 4; ++k) {
        const short a = static_cast<short>(0x0100 + 4 * k * 0x0101), b = static_cast<short>(a + 0x0202);
        const __m256i pick = _mm256_setr_m128i(_mm_set1_epi16(a), _mm_set1_epi16(b));
        block.scale[k] = _mm256_shuffle_epi8(low, pick);
        block.scale[4 + k] = _mm256_shuffle_epi8(high, pick);
    }
}
/// Eight 16-bit scales, one per 32 elements.
inline void spread_scales32(__m128i scales, Block256& block) {
    const __m256i both = _mm256_broadcastsi128_si256(scales);
    for (int k = 0; k < 8; ++k)
        block.scale[k] =
            _mm256_shuffle_epi8(both, _mm256_set1_epi16(static_cast<short>(0x0100 + 2 * k * 0x0101)));
}

template <class Loader>
struct Tile256 {
    static std::int64_t row_bytes(std::int64_t n_in) { return n_in / 256 * Loader::kBytes; }

    template <int Rows, int Columns>
    static F8 dot(const std::byte* const* rows, std::int64_t n_in, const Column* columns) {
        __m256 y = _mm256_setzero_ps();
        alignas(32) float d[8], d_column[8], dmin[8];
        __m256i products[8], mins[8];
        for (std::int64_t b = 0; b < n_in / 256; ++b) {
#pragma GCC unroll 1
            for (int r = 0; r < Rows; ++r) {
                const std::byte* p = rows[r] + b * Loader::kBytes;
                Block256 block;
                float row_d, row_dmin = 0;
                Loader::load(p, block, row_d, row_dmin);
#pragma GCC unroll 8
                for (int c = 0; c < Columns; ++c) {
                    const int lane = r * Columns + c;
                    products[lane] =
                        product(block, columns[c].q + 256 * b, columns[c].sums + kSumsPer256 * b);
                    if constexpr (Loader::kHasMin)
                        mins[lane] = _mm256_madd_epi16(block.mins, load32(columns[c].sums + kSumsPer256 * b));
                    d[lane] = row_d;
                    d_column[lane] = columns[c].d[b];
                    if constexpr (Loader::kHasMin) dmin[lane] = row_dmin;
                }
            }
            const __m256 dc = _mm256_load_ps(d_column);
            y = _mm256_fmadd_ps(_mm256_mul_ps(_mm256_load_ps(d), dc),
                                _mm256_cvtepi32_ps(sum_each_i32(products)), y);
            if constexpr (Loader::kHasMin)
                y = _mm256_fnmadd_ps(_mm256_mul_ps(_mm256_load_ps(dmin), dc),
                                     _mm256_cvtepi32_ps(sum_each_i32(mins)), y);
        }
        return {y};
    }

    /// One column: the blocks of all rows in the order in which they lie in memory, eight at a time, so that
    /// the weights are one stream. Each row's sum is the same chain as above.
    static void dot_column(const std::byte* w, int n_rows, std::int64_t n_in, const Column& column,
                           float* y) {
        const std::int64_t n_blocks = n_in / 256, n_total = n_rows * n_blocks;
        float scale[8], min_scale[8], product_sums[8], min_sums[8];
        __m256i products[8], mins[8];
        for (__m256i& v : products) v = _mm256_setzero_si256();
        for (__m256i& v : mins) v = _mm256_setzero_si256();
        std::int64_t b = 0, next = 0;  // block of the row: to be added, to be multiplied
        float total = 0;
        for (std::int64_t first = 0; first < n_total; first += 8) {
            const int n = n_total - first < 8 ? static_cast<int>(n_total - first) : 8;
#pragma GCC unroll 1
            for (int i = 0; i < n; ++i) {
                Block256 block;
                float d, dmin = 0;
                Loader::load(w + (first + i) * Loader::kBytes, block, d, dmin);
                products[i] = product(block, column.q + 256 * next, column.sums + kSumsPer256 * next);
                scale[i] = d * column.d[next];
                if constexpr (Loader::kHasMin) {
                    mins[i] = _mm256_madd_epi16(block.mins, load32(column.sums + kSumsPer256 * next));
                    min_scale[i] = dmin * column.d[next];
                }
                if (++next == n_blocks) next = 0;
            }
            _mm256_storeu_ps(product_sums, _mm256_cvtepi32_ps(sum_each_i32(products)));
            if constexpr (Loader::kHasMin) _mm256_storeu_ps(min_sums, _mm256_cvtepi32_ps(sum_each_i32(mins)));
            for (int i = 0; i < n; ++i) {
                total = __builtin_fmaf(scale[i], product_sums[i], total);
                if constexpr (Loader::kHasMin) total = __builtin_fmaf(-min_scale[i], min_sums[i], total);
                if (++b < n_blocks) continue;
                *y++ = total;
                total = 0;
                b = 0;
            }
        }
    }

  private:
    static __m256i product(const Block256& block, const std::int8_t* q, const std::int16_t* sums) {
        __m256i total = _mm256_setzero_si256();
#pragma GCC unroll 8
        for (int k = 0; k < 8; ++k) {
            const __m256i a = load32(q + 32 * k);
            __m256i pairs;
            if constexpr (Loader::kIsSigned)
                pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(block.w[k]), _mm256_sign_epi8(a, block.w[k]));
            else
                pairs = _mm256_maddubs_epi16(block.w[k], a);
            total = _mm256_add_epi32(total, _mm256_madd_epi16(block.scale[k], pairs));
        }
        if constexpr (Loader::kOffsetBits > 0)
            total = _mm256_sub_epi32(
                total, _mm256_slli_epi32(_mm256_madd_epi16(block.scales, load32(sums)), Loader::kOffsetBits));
        return total;
    }
};

/// Loader::load gives the 32 signed bytes of a block, its d, and m where it has one.
template <class Loader>
struct Tile32 {
    static std::int64_t row_bytes(std::int64_t n_in) { return n_in / 32 * Loader::kBytes; }

    template <int Rows, int Columns>
    static F8 dot(const std::byte* const* rows, std::int64_t n_in, const Column* columns) {
        __m256 y = _mm256_setzero_ps();
        alignas(32) float d[8], d_column[8], m[8];
        alignas(32) std::int32_t sums[8];
        __m256i products[8];
        const __m256i ones = _mm256_set1_epi16(1);
        for (std::int64_t b = 0; b < n_in / 32; ++b) {
#pragma GCC unroll 8
            for (int r = 0; r < Rows; ++r) {
                float row_d, row_m = 0;
                const __m256i w = Loader::load(rows[r] + b * Loader::kBytes, row_d, row_m);
                const __m256i magnitude = _mm256_abs_epi8(w);
#pragma GCC unroll 8
                for (int c = 0; c < Columns; ++c) {
                    const int lane = r * Columns + c;
                    const __m256i a = load32(columns[c].q + 32 * b);
                    products[lane] =
                        _mm256_madd_epi16(ones, _mm256_maddubs_epi16(magnitude, _mm256_sign_epi8(a, w)));
                    d[lane] = row_d;
                    d_column[lane] = columns[c].d[b];
                    if constexpr (Loader::kHasMin) {
                        m[lane] = row_m;
                        sums[lane] = columns[c].sums[b];
                    }
                }
            }
            const __m256 dc = _mm256_load_ps(d_column);
            y = _mm256_fmadd_ps(_mm256_mul_ps(_mm256_load_ps(d), dc),
                                _mm256_cvtepi32_ps(sum_each_i32(products)), y);
            if constexpr (Loader::kHasMin)
                y = _mm256_fmadd_ps(_mm256_mul_ps(_mm256_load_ps(m), dc),
                                    _mm256_cvtepi32_ps(_mm256_load_si256(reinterpret_cast<__m256i*>(sums))),
                                    y);
        }
        return {y};
    }

    /// One column; see Tile256.
    static void dot_column(const std::byte* w, int n_rows, std::int64_t n_in, const Column& column,
                           float* y) {
        const std::int64_t n_blocks = n_in / 32, n_total = n_rows * n_blocks;
        float scale[8], min_scale[8], min_sums[8], product_sums[8];
        __m256i products[8];
        for (__m256i& v : products) v = _mm256_setzero_si256();
        const __m256i ones = _mm256_set1_epi16(1);
        std::int64_t b = 0, next = 0;
        float total = 0;
        for (std::int64_t first = 0; first < n_total; first += 8) {
            const int n = n_total - first < 8 ? static_cast<int>(n_total - first) : 8;
#pragma GCC unroll 8
            for (int i = 0; i < n; ++i) {
                float d, m = 0;
                const __m256i w8 = Loader::load(w + (first + i) * Loader::kBytes, d, m);
                const __m256i a = load32(column.q + 32 * next);
                products[i] = _mm256_madd_epi16(
                    ones, _mm256_maddubs_epi16(_mm256_abs_epi8(w8), _mm256_sign_epi8(a, w8)));
                scale[i] = d * column.d[next];
                if constexpr (Loader::kHasMin) {
                    min_scale[i] = m * column.d[next];
                    min_sums[i] = column.sums[next];
                }
                if (++next == n_blocks) next = 0;
            }
            _mm256_storeu_ps(product_sums, _mm256_cvtepi32_ps(sum_each_i32(products)));
            for (int i = 0; i < n; ++i) {
                total = __builtin_fmaf(scale[i], product_sums[i], total);
                if constexpr (Loader::kHasMin) total = __builtin_fmaf(min_scale[i], min_sums[i], total);
                if (++b < n_blocks) continue;
                *y++ = total;
                total = 0;
                b = 0;
            }
        }
    }
};

/// The DotRows of a loader's tile: one column as a stream, several in tiles.
template <class Tile>
inline void int_dot_rows_of(const std::byte* w, std::int64_t row_bytes, int n_rows, std::int64_t n_in,
                            const Column* columns, int n_columns, float* const* y) {
    if (n_columns == 1 && row_bytes == Tile::row_bytes(n_in))
        return Tile::dot_column(w, n_rows, n_in, columns[0], y[0]);
    dot_rows_of<Tile>(w, row_bytes, n_rows, n_in, columns, n_columns, y);
}

/// The kernels by family; nullptr for a type of another family.
DotRows* dot_rows_legacy(WeightType type);
DotRows* dot_rows_k(WeightType type);
DotRows* dot_rows_iq(WeightType type);

}  // namespace pantheon::kernels::avx2

#endif

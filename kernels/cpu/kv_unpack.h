// Rows of a KV cache to f32, 32 values at a time; exact.
#pragma once

#include "kernels/attention/kv_view.h"
#include "kernels/cpu/vec8.h"

namespace pantheon::kernels::PANTHEON_ISA {

#if defined(PANTHEON_HAS_AVX2)

/// Sixteen int8 times d.
inline void store_scaled(float* y, __m128i q, __m256 d) {
    _mm256_storeu_ps(y, _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(q)), d));
    const __m128i high = _mm_unpackhi_epi64(q, q);
    _mm256_storeu_ps(y + 8, _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(high)), d));
}

inline void unpack_q8_0(const std::byte* block, float* y) {
    const __m256 d = _mm256_set1_ps(half_at(block));
    store_scaled(y, _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + 2)), d);
    store_scaled(y + 16, _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + 18)), d);
}

inline void unpack_q4_0(const std::byte* block, float* y) {
    const __m256 d = _mm256_set1_ps(half_at(block));
    const __m128i pairs = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + 2));
    const __m128i mask = _mm_set1_epi8(15), bias = _mm_set1_epi8(8);
    store_scaled(y, _mm_sub_epi8(_mm_and_si128(pairs, mask), bias), d);
    store_scaled(y + 16, _mm_sub_epi8(_mm_and_si128(_mm_srli_epi16(pairs, 4), mask), bias), d);
}

#else

inline void unpack_q8_0(const std::byte* block, float* y) {
    const float d = half_at(block);
    for (int i = 0; i < kKvBlock; ++i) y[i] = static_cast<float>(static_cast<std::int8_t>(block[2 + i])) * d;
}

inline void unpack_q4_0(const std::byte* block, float* y) {
    const float d = half_at(block);
    for (int i = 0; i < kKvBlock / 2; ++i) {
        const int pair = static_cast<int>(block[2 + i]);
        y[i] = static_cast<float>((pair & 15) - 8) * d;
        y[i + kKvBlock / 2] = static_cast<float>((pair >> 4) - 8) * d;
    }
}

#endif

/// Values [32 i, 32 i + 32) of a row; past the end of the row 0.
template <KvRowType kType>
inline void unpack_block(const std::byte* row, int i, int head_dim, float* y) {
    if constexpr (kType == KvRowType::q8_0) {
        unpack_q8_0(row + i * 34, y);
    } else if constexpr (kType == KvRowType::q4_0) {
        unpack_q4_0(row + i * 18, y);
    } else {
        constexpr int kBytes = kType == KvRowType::f32 ? 4 : 2;
        const std::byte* p = row + static_cast<std::ptrdiff_t>(i) * kKvBlock * kBytes;
        const int n = head_dim - i * kKvBlock;
        std::byte padded[kKvBlock * kBytes];
        if (n < kKvBlock) {
            std::memset(padded, 0, sizeof padded);
            std::memcpy(padded, p, static_cast<std::size_t>(n) * kBytes);
            p = padded;
        }
        for (int j = 0; j < kKvBlock; j += 8) {
            const std::byte* eight = p + j * kBytes;
            store(y + j, kType == KvRowType::f32 ? load_f32(eight) : load_f16(eight));
        }
    }
}

/// Blocks [first, first + n) of n_rows rows that lie row_bytes apart, to rows of 32 n values without gaps.
template <KvRowType kType>
inline void unpack_rows_of(const std::byte* rows, std::size_t row_bytes, int n_rows, int first, int n,
                           int head_dim, float* y) {
    for (int r = 0; r < n_rows; ++r, rows += row_bytes)
        for (int i = 0; i < n; ++i, y += kKvBlock) unpack_block<kType>(rows, first + i, head_dim, y);
}

inline void unpack_rows(KvRowType type, const std::byte* rows, std::size_t row_bytes, int n_rows, int first,
                        int n, int head_dim, float* y) {
    switch (type) {
        case KvRowType::f32:
            return unpack_rows_of<KvRowType::f32>(rows, row_bytes, n_rows, first, n, head_dim, y);
        case KvRowType::f16:
            return unpack_rows_of<KvRowType::f16>(rows, row_bytes, n_rows, first, n, head_dim, y);
        case KvRowType::q8_0:
            return unpack_rows_of<KvRowType::q8_0>(rows, row_bytes, n_rows, first, n, head_dim, y);
        case KvRowType::q4_0:
            return unpack_rows_of<KvRowType::q4_0>(rows, row_bytes, n_rows, first, n, head_dim, y);
    }
}

}  // namespace pantheon::kernels::PANTHEON_ISA

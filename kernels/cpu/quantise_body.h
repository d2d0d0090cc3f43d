// Activations to int8 blocks; contract in leaves.h.
#pragma once

#include "kernels/cpu/leaves.h"
#include "kernels/cpu/math8.h"

namespace pantheon::kernels::PANTHEON_ISA {

/// Width values per scale, SumWidth values per sum; of a block of 256 also the sums of 32.
template <int Width, int SumWidth>
inline void quantise_blocks(const float* x, std::int64_t n, std::int8_t* q, std::int16_t* sums, float* d) {
    constexpr float kRound = 12582912.0f;  // 1.5 · 2^23: the sum's low byte is the rounded value
    constexpr float kTiny = 1e-30f;        // below it 127 / max could overflow
    constexpr int kSums = Width == 256 ? kSumsPer256 : 1;
    for (; n > 0; n -= Width, x += Width, q += Width, sums += kSums, ++d) {
        F8 largest = zero8(), finite = zero8();
        for (int i = 0; i < Width; i += 8) {
            const F8 v = load(x + i);
            largest = max(largest, max(v, zero8() - v));
            finite = fma(v, zero8(), finite);
        }
        float lanes[8];
        store(lanes, largest);
        float max_abs = lanes[0];
        for (int i = 1; i < 8; ++i) max_abs = lanes[i] > max_abs ? lanes[i] : max_abs;
        const float check = sum(finite);  // 0, or NaN when a value is not finite
        const bool is_plain = check == 0.0f && max_abs >= kTiny;
        F8 with_x = zero8(), with_q = zero8();
        const F8 inverse = set1(is_plain ? 127.0f / max_abs : 0.0f);
        for (int s = 0; s < Width; s += SumWidth) {
            int total = 0;
            for (int i = s; i < s + SumWidth; i += 8) {
                float shifted[8];
                std::uint32_t bits[8];
                const F8 v = is_plain ? load(x + i) * inverse : zero8();
                store(shifted, v + set1(kRound));
                const F8 rounded = load(shifted) - set1(kRound);
                with_x = fma(v, rounded, with_x);
                with_q = fma(rounded, rounded, with_q);  // exact: integers below 2^24
                std::memcpy(bits, shifted, sizeof bits);
                for (int j = 0; j < 8; ++j) {
                    q[i + j] = static_cast<std::int8_t>(bits[j] & 0xFF);
                    total += q[i + j];
                }
            }
            sums[s / SumWidth] = static_cast<std::int16_t>(total);
        }
        if constexpr (Width == 256)
            for (int s = 0; s < 8; ++s)
                sums[16 + s] = static_cast<std::int16_t>(sums[2 * s] + sums[2 * s + 1]);
        *d = is_plain ? max_abs / 127.0f * (sum(with_x) / sum(with_q)) : check;
    }
}

inline void quantise_256(const float* x, std::int64_t n, std::int8_t* q, std::int16_t* sums, float* d) {
    quantise_blocks<256, 16>(x, n, q, sums, d);
}
inline void quantise_32(const float* x, std::int64_t n, std::int8_t* q, std::int16_t* sums, float* d) {
    quantise_blocks<32, 32>(x, n, q, sums, d);
}

}  // namespace pantheon::kernels::PANTHEON_ISA

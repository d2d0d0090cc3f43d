// The IQ types with blocks of 256 as integers; see block_ints.h. Fractions of the formats move into the
// scale: (0.5 + s) becomes 2s + 1 and grid ± 0.125 becomes 8 grid ± 1, each paid for by a power of two in d.
// g counts groups of 32 elements, l sub-groups of 8.
#pragma once

#include "kernels/cpu/block_ints.h"

namespace pantheon::kernels::PANTHEON_ISA {

/// Four bytes of 7-bit sign codes to four bytes of signs: the eighth makes the number of minus signs even.
inline std::uint32_t expand_signs(std::uint32_t codes) {
    // Folds each byte onto its lowest bit; what comes in from the next byte never reaches that bit.
    std::uint32_t parity = codes ^ codes >> 4;
    parity ^= parity >> 2;
    parity ^= parity >> 1;
    return codes | (parity & 0x01010101u) << 7;
}
/// Four 7-bit fields of a word to four bytes.
inline std::uint32_t spread_codes(std::uint32_t word) {
    return (word & 127u) | (word >> 7 & 127u) << 8 | (word >> 14 & 127u) << 16 | (word >> 21 & 127u) << 24;
}

/// Level vectors of 32 elements, eight a word, as they lie in the grids.
struct Levels32 {
    std::uint64_t of[4];
};

template <class Entry>
inline std::uint64_t levels_of(const Entry& entry) {
    static_assert(sizeof entry == 8);
    std::uint64_t levels;
    std::memcpy(&levels, &entry, sizeof levels);
    return levels;
}
template <class Entry>
inline std::uint64_t levels_of(const Entry& low, const Entry& high) {
    static_assert(sizeof low == 4);
    std::uint32_t a, b;
    std::memcpy(&a, &low, sizeof a);
    std::memcpy(&b, &high, sizeof b);
    return a | static_cast<std::uint64_t>(b) << 32;
}

#if defined(PANTHEON_ISA_AVX2)

inline __m256i in_register(const Levels32& levels) {
    return _mm256_setr_epi64x(
        static_cast<std::int64_t>(levels.of[0]), static_cast<std::int64_t>(levels.of[1]),
        static_cast<std::int64_t>(levels.of[2]), static_cast<std::int64_t>(levels.of[3]));
}
/// w[i] = level i, negative where bit i of signs is set.
inline void store_signed(const Levels32& levels, std::uint32_t signs, std::int8_t* w) {
    const __m256i copied = _mm256_shuffle_epi8(
        _mm256_set1_epi32(static_cast<int>(signs)),
        _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303));
    const __m256i bit = _mm256_set1_epi64x(static_cast<std::int64_t>(0x8040201008040201u));
    const __m256i mask = _mm256_cmpeq_epi8(_mm256_and_si256(copied, bit), bit);
    const __m256i value = _mm256_sub_epi8(_mm256_xor_si256(in_register(levels), mask), mask);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(w), value);
}
/// w[i] = 8 · level i + the byte i of shifts, for levels −1, 0 and 1.
inline void store_shifted(const Levels32& levels, const Levels32& shifts, std::int8_t* w) {
    const __m256i eightfold = _mm256_and_si256(_mm256_slli_epi16(in_register(levels), 3),
                                               _mm256_set1_epi8(static_cast<char>(0xF8)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(w), _mm256_add_epi8(eightfold, in_register(shifts)));
}

#else

inline void store_signed(const Levels32& levels, std::uint32_t signs, std::int8_t* w) {
    std::memcpy(w, levels.of, sizeof levels.of);
    for (int i = 0; i < 32; ++i)
        if (signs >> i & 1u) w[i] = to_i8(-w[i]);
}
inline void store_shifted(const Levels32& levels, const Levels32& shifts, std::int8_t* w) {
    std::int8_t shift[32];
    std::memcpy(w, levels.of, sizeof levels.of);
    std::memcpy(shift, shifts.of, sizeof shift);
    for (int i = 0; i < 32; ++i) w[i] = to_i8(8 * w[i] + shift[i]);
}

#endif

inline void set_scale32(Ints256& out, int g, int scale) {
    out.scale[2 * g] = out.scale[2 * g + 1] = to_i16(scale);
}
inline int odd(unsigned s) {
    return static_cast<int>(2 * s + 1);
}

struct Iq2Xxs {
    static constexpr int kBytes = 66;
    static constexpr bool kHasMin = false;
    static void unpack(const std::byte* p, const IqGrids& grids, Ints256& out) {
        const auto* grid = grids.iq2_xxs.data();
        for (int g = 0; g < 8; ++g) {
            const std::byte* indices = p + 2 + 8 * g;
            const std::uint32_t word = u32_at(indices + 4);
            set_scale32(out, g, odd(word >> 28));
            Levels32 levels;
            for (int l = 0; l < 4; ++l) levels.of[l] = levels_of(grid[byte_at(indices + l)]);
            store_signed(levels, expand_signs(spread_codes(word)), out.w + 32 * g);
        }
        out.d = half_at(p) * 0.125f;
    }
};

struct Iq2Xs {
    static constexpr int kBytes = 74;
    static constexpr bool kHasMin = false;
    static void unpack(const std::byte* p, const IqGrids& grids, Ints256& out) {
        const auto* grid = grids.iq2_xs.data();
        for (int b = 0; b < 16; ++b) out.scale[b] = to_i16(odd(nibble_at(p + 66 + b / 2, b % 2)));
        for (int g = 0; g < 8; ++g) {
            Levels32 levels;
            std::uint32_t codes = 0;
            for (int l = 0; l < 4; ++l) {
                const unsigned v = u16_at(p + 2 + 2 * (4 * g + l));
                levels.of[l] = levels_of(grid[v & 511u]);
                codes |= v >> 9 << 8 * l;
            }
            store_signed(levels, expand_signs(codes), out.w + 32 * g);
        }
        out.d = half_at(p) * 0.125f;
    }
};

struct Iq2S {
    static constexpr int kBytes = 82;
    static constexpr bool kHasMin = false;
    static void unpack(const std::byte* p, const IqGrids& grids, Ints256& out) {
        const auto* grid = grids.iq2_s.data();
        for (int b = 0; b < 16; ++b) out.scale[b] = to_i16(odd(nibble_at(p + 74 + b / 2, b % 2)));
        for (int g = 0; g < 8; ++g) {
            const unsigned high = byte_at(p + 66 + g);
            Levels32 levels;
            for (int l = 0; l < 4; ++l)
                levels.of[l] = levels_of(grid[byte_at(p + 2 + 4 * g + l) | (high >> 2 * l & 3u) << 8]);
            store_signed(levels, u32_at(p + 34 + 4 * g), out.w + 32 * g);
        }
        out.d = half_at(p) * 0.125f;
    }
};

struct Iq3Xxs {
    static constexpr int kBytes = 98;
    static constexpr bool kHasMin = false;
    static void unpack(const std::byte* p, const IqGrids& grids, Ints256& out) {
        const auto* grid = grids.iq3_xxs.data();
        for (int g = 0; g < 8; ++g) {
            const std::byte* indices = p + 2 + 8 * g;
            const std::uint32_t word = u32_at(p + 66 + 4 * g);
            set_scale32(out, g, odd(word >> 28));
            Levels32 levels;
            for (int l = 0; l < 4; ++l)
                levels.of[l] = levels_of(grid[byte_at(indices + 2 * l)], grid[byte_at(indices + 2 * l + 1)]);
            store_signed(levels, expand_signs(spread_codes(word)), out.w + 32 * g);
        }
        out.d = half_at(p) * 0.25f;
    }
};

struct Iq3S {
    static constexpr int kBytes = 110;
    static constexpr bool kHasMin = false;
    static void unpack(const std::byte* p, const IqGrids& grids, Ints256& out) {
        const auto* grid = grids.iq3_s.data();
        for (int g = 0; g < 8; ++g) {
            set_scale32(out, g, odd(nibble_at(p + 106 + g / 2, g % 2)));
            const std::byte* low = p + 2 + 8 * g;
            const unsigned high = byte_at(p + 66 + g);
            Levels32 levels;
            for (int l = 0; l < 4; ++l)
                levels.of[l] = levels_of(grid[byte_at(low + 2 * l) | (high >> 2 * l & 1u) << 8],
                                         grid[byte_at(low + 2 * l + 1) | (high >> (2 * l + 1) & 1u) << 8]);
            store_signed(levels, u32_at(p + 74 + 4 * g), out.w + 32 * g);
        }
        out.d = half_at(p);
    }
};

/// Eight bytes of 1 or −1.
inline std::uint64_t shift_of(bool is_minus) {
    return is_minus ? ~std::uint64_t{0} : 0x0101010101010101u;
}

struct Iq1S {
    static constexpr int kBytes = 50;
    static constexpr bool kHasMin = false;
    static void unpack(const std::byte* p, const IqGrids& grids, Ints256& out) {
        const auto* grid = grids.iq1.data();
        for (int g = 0; g < 8; ++g) {
            const unsigned high = u16_at(p + 34 + 2 * g);
            set_scale32(out, g, odd(high >> 12 & 7u));
            Levels32 levels, shifts;
            for (int l = 0; l < 4; ++l) {
                levels.of[l] = levels_of(grid[byte_at(p + 2 + 4 * g + l) | (high >> 3 * l & 7u) << 8]);
                shifts.of[l] = shift_of((high & 0x8000u) != 0);
            }
            store_shifted(levels, shifts, out.w + 32 * g);
        }
        out.d = half_at(p) * 0.125f;
    }
};

struct Iq1M {
    static constexpr int kBytes = 56;
    static constexpr bool kHasMin = false;
    static void unpack(const std::byte* p, const IqGrids& grids, Ints256& out) {
        const auto* grid = grids.iq1.data();
        const std::byte* scales = p + 48;
        // The block scale has no field of its own: its four nibbles are the top nibbles of the scale words.
        std::uint16_t d_bits = 0;
        for (int i = 0; i < 4; ++i)
            d_bits = static_cast<std::uint16_t>(d_bits | u16_at(scales + 2 * i) >> 12 << 4 * i);
        for (int u = 0; u < 16; ++u)
            out.scale[u] = to_i16(odd(u16_at(scales + 2 * (u / 4)) >> 3 * (u % 4) & 7u));
        for (int g = 0; g < 8; ++g) {
            Levels32 levels, shifts;
            for (int l = 0; l < 4; ++l) {
                const unsigned high = nibble_at(p + 32 + 2 * g + l / 2, l % 2);
                levels.of[l] = levels_of(grid[byte_at(p + 4 * g + l) | (high & 7u) << 8]);
                shifts.of[l] = shift_of((high & 8u) != 0);
            }
            store_shifted(levels, shifts, out.w + 32 * g);
        }
        std::byte d_bytes[2];
        std::memcpy(d_bytes, &d_bits, sizeof d_bytes);
        out.d = half_at(d_bytes) * 0.125f;
    }
};

struct Iq4Xs {
    static constexpr int kBytes = 136;
    static constexpr bool kHasMin = false;
    static void unpack(const std::byte* p, Ints256& out) {
        const unsigned scales_high = u16_at(p + 2);
        for (int g = 0; g < 8; ++g) {
            const unsigned scale = nibble_at(p + 4 + g / 2, g % 2) | (scales_high >> 2 * g & 3u) << 4;
            set_scale32(out, g, static_cast<int>(scale) - 32);
            for (int e = 0; e < 32; ++e)
                out.w[32 * g + e] = kIq4Levels[nibble_at(p + 8 + 16 * g + e % 16, e / 16)];
        }
        out.d = half_at(p);
    }
};

}  // namespace pantheon::kernels::PANTHEON_ISA

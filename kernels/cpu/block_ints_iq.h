// The IQ types with blocks of 256 as integers; see block_ints.h. Fractions of the formats move into the
// scale: (0.5 + s) becomes 2s + 1 and grid ± 0.125 becomes 8 grid ± 1, each paid for by a power of two in d.
// g counts groups of 32 elements, l sub-groups of 8.
#pragma once

#include "kernels/cpu/block_ints.h"

namespace pantheon::kernels::PANTHEON_ISA {

/// A 7-bit sign code stands for 8 signs: the eighth makes the number of minus signs even.
inline unsigned expand_signs(unsigned code) {
    return code | static_cast<unsigned>(__builtin_parity(code)) << 7;
}

/// Bytes of ones where the sign bit is set.
inline std::uint64_t sign_mask(unsigned signs) {
    // Bit i to the top of byte i: copy all bits to each byte, keep one in each, and carry it up.
    const std::uint64_t one_each = (signs * 0x0101010101010101u) & 0x8040201008040201u;
    const std::uint64_t top = ((one_each & 0x7F7F7F7F7F7F7F7Fu) + 0x7F7F7F7F7F7F7F7Fu) | one_each;
    return (top >> 7 & 0x0101010101010101u) * 0xFFu;
}

/// Eight levels, none of them zero, with their signs.
inline void store_signed(std::uint64_t levels, unsigned signs, std::int8_t* w) {
    const std::uint64_t mask = sign_mask(signs);
    // −v = ~v + 1; no byte of ~v is 255, since no level is zero, so nothing carries into the next byte.
    const std::uint64_t value = (levels ^ mask) + (mask & 0x0101010101010101u);
    std::memcpy(w, &value, sizeof value);
}

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
        for (int g = 0; g < 8; ++g) {
            const std::byte* indices = p + 2 + 8 * g;
            const std::uint32_t word = u32_at(indices + 4);
            set_scale32(out, g, odd(word >> 28));
            for (int l = 0; l < 4; ++l)
                store_signed(levels_of(grids.iq2_xxs.data()[byte_at(indices + l)]),
                             expand_signs(word >> 7 * l & 127u), out.w + 32 * g + 8 * l);
        }
        out.d = half_at(p) * 0.125f;
    }
};

struct Iq2Xs {
    static constexpr int kBytes = 74;
    static constexpr bool kHasMin = false;
    static void unpack(const std::byte* p, const IqGrids& grids, Ints256& out) {
        for (int b = 0; b < 16; ++b) out.scale[b] = to_i16(odd(nibble_at(p + 66 + b / 2, b % 2)));
        for (int t = 0; t < 32; ++t) {
            const unsigned v = u16_at(p + 2 + 2 * t);
            store_signed(levels_of(grids.iq2_xs.data()[v & 511u]), expand_signs(v >> 9), out.w + 8 * t);
        }
        out.d = half_at(p) * 0.125f;
    }
};

struct Iq2S {
    static constexpr int kBytes = 82;
    static constexpr bool kHasMin = false;
    static void unpack(const std::byte* p, const IqGrids& grids, Ints256& out) {
        for (int b = 0; b < 16; ++b) out.scale[b] = to_i16(odd(nibble_at(p + 74 + b / 2, b % 2)));
        for (int t = 0; t < 32; ++t) {
            const unsigned high = byte_at(p + 66 + t / 4) >> 2 * (t % 4) & 3u;
            store_signed(levels_of(grids.iq2_s.data()[byte_at(p + 2 + t) | high << 8]), byte_at(p + 34 + t),
                         out.w + 8 * t);
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
            for (int l = 0; l < 4; ++l)
                store_signed(levels_of(grid[byte_at(indices + 2 * l)], grid[byte_at(indices + 2 * l + 1)]),
                             expand_signs(word >> 7 * l & 127u), out.w + 32 * g + 8 * l);
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
            const unsigned high = byte_at(p + 66 + g);
            for (int l = 0; l < 4; ++l) {
                const std::byte* low = p + 2 + 8 * g + 2 * l;
                const unsigned first = byte_at(low) | (high >> 2 * l & 1u) << 8;
                const unsigned second = byte_at(low + 1) | (high >> (2 * l + 1) & 1u) << 8;
                store_signed(levels_of(grid[first], grid[second]), byte_at(p + 74 + 4 * g + l),
                             out.w + 32 * g + 8 * l);
            }
        }
        out.d = half_at(p);
    }
};

/// Eight values 8 · grid ± 1.
template <class Entry>
inline void store_shifted(const Entry& levels, bool is_minus, std::int8_t* w) {
    const std::int8_t* level = levels.data();
    for (int j = 0; j < 8; ++j) w[j] = to_i8(8 * level[j] + (is_minus ? -1 : 1));
}

struct Iq1S {
    static constexpr int kBytes = 50;
    static constexpr bool kHasMin = false;
    static void unpack(const std::byte* p, const IqGrids& grids, Ints256& out) {
        for (int g = 0; g < 8; ++g) {
            const unsigned high = u16_at(p + 34 + 2 * g);
            set_scale32(out, g, odd(high >> 12 & 7u));
            for (int l = 0; l < 4; ++l)
                store_shifted(grids.iq1.data()[byte_at(p + 2 + 4 * g + l) | (high >> 3 * l & 7u) << 8],
                              (high & 0x8000u) != 0, out.w + 32 * g + 8 * l);
        }
        out.d = half_at(p) * 0.125f;
    }
};

struct Iq1M {
    static constexpr int kBytes = 56;
    static constexpr bool kHasMin = false;
    static void unpack(const std::byte* p, const IqGrids& grids, Ints256& out) {
        const std::byte* scales = p + 48;
        // The block scale has no field of its own: its four nibbles are the top nibbles of the scale words.
        std::uint16_t d_bits = 0;
        for (int i = 0; i < 4; ++i)
            d_bits = static_cast<std::uint16_t>(d_bits | u16_at(scales + 2 * i) >> 12 << 4 * i);
        for (int u = 0; u < 16; ++u)
            out.scale[u] = to_i16(odd(u16_at(scales + 2 * (u / 4)) >> 3 * (u % 4) & 7u));
        for (int t = 0; t < 32; ++t) {
            const unsigned h = nibble_at(p + 32 + t / 2, t % 2);
            store_shifted(grids.iq1.data()[byte_at(p + t) | (h & 7u) << 8], (h & 8u) != 0, out.w + 8 * t);
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

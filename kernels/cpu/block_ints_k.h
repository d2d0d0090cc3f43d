// The K types as integers; see block_ints.h. Element e = 128 n + 32 j + l.
#pragma once

#include "kernels/cpu/block_ints.h"

namespace pantheon::kernels::PANTHEON_ISA {

/// Eight 6-bit (scale, min) pairs from 12 bytes, one per 32 elements, in Q4_K and Q5_K.
inline void unpack_scale_min(const std::byte* packed, Ints256& out) {
    for (int b = 0; b < 8; ++b) {
        unsigned scale = byte_at(packed + b) & 63u, min = byte_at(packed + b + 4) & 63u;
        if (b >= 4) {
            const unsigned low = byte_at(packed + b + 4);
            scale = (low & 15u) | byte_at(packed + b - 4) >> 6 << 4;
            min = low >> 4 | byte_at(packed + b) >> 6 << 4;
        }
        out.scale[2 * b] = out.scale[2 * b + 1] = to_i16(static_cast<int>(scale));
        out.min[2 * b] = out.min[2 * b + 1] = to_i16(static_cast<int>(min));
    }
}

struct Q2K {
    static constexpr int kBytes = 84;
    static constexpr bool kHasMin = true;
    static void unpack(const std::byte* p, Ints256& out) {
        for (int b = 0; b < 16; ++b) {
            out.scale[b] = to_i16(static_cast<int>(nibble_at(p + b, 0)));
            out.min[b] = to_i16(static_cast<int>(nibble_at(p + b, 1)));
        }
        for (int e = 0; e < 256; ++e)
            out.w[e] =
                to_i8(static_cast<int>(byte_at(p + 16 + 32 * (e / 128) + e % 32) >> 2 * (e % 128 / 32) & 3u));
        out.d = half_at(p + 80);
        out.dmin = half_at(p + 82);
    }
};

struct Q3K {
    static constexpr int kBytes = 110;
    static constexpr bool kHasMin = false;
    static void unpack(const std::byte* p, Ints256& out) {
        const std::byte *high_bits = p, *quants = p + 32, *scales = p + 96;
        for (int b = 0; b < 16; ++b) {
            const unsigned low = nibble_at(scales + b % 8, b / 8);
            const unsigned high = byte_at(scales + 8 + b % 4) >> 2 * (b / 4) & 3u;
            out.scale[b] = to_i16(static_cast<int>(low | high << 4) - 32);
        }
        for (int e = 0; e < 256; ++e) {
            const int n = e / 128, j = e % 128 / 32, l = e % 32;
            const unsigned low = byte_at(quants + 32 * n + l) >> 2 * j & 3u;
            const unsigned high = byte_at(high_bits + l) >> (4 * n + j) & 1u;
            out.w[e] = to_i8(static_cast<int>(low | high << 2) - 4);
        }
        out.d = half_at(p + 108);
    }
};

struct Q4K {
    static constexpr int kBytes = 144;
    static constexpr bool kHasMin = true;
    static void unpack(const std::byte* p, Ints256& out) {
        unpack_scale_min(p + 4, out);
        for (int e = 0; e < 256; ++e)
            out.w[e] = to_i8(static_cast<int>(nibble_at(p + 16 + 32 * (e / 64) + e % 32, e / 32 % 2)));
        out.d = half_at(p);
        out.dmin = half_at(p + 2);
    }
};

struct Q5K {
    static constexpr int kBytes = 176;
    static constexpr bool kHasMin = true;
    static void unpack(const std::byte* p, Ints256& out) {
        unpack_scale_min(p + 4, out);
        for (int e = 0; e < 256; ++e) {
            const unsigned low = nibble_at(p + 48 + 32 * (e / 64) + e % 32, e / 32 % 2);
            out.w[e] = to_i8(static_cast<int>(low | (byte_at(p + 16 + e % 32) >> e / 32 & 1u) << 4));
        }
        out.d = half_at(p);
        out.dmin = half_at(p + 2);
    }
};

struct Q6K {
    static constexpr int kBytes = 210;
    static constexpr bool kHasMin = false;
    static void unpack(const std::byte* p, Ints256& out) {
        for (int b = 0; b < 16; ++b) out.scale[b] = to_i16(signed_byte_at(p + 192 + b));
        for (int e = 0; e < 256; ++e) {
            const int n = e / 128, j = e % 128 / 32, l = e % 32;
            const unsigned low = nibble_at(p + 64 * n + 32 * (j & 1) + l, j >> 1);
            const unsigned high = byte_at(p + 128 + 32 * n + l) >> 2 * j & 3u;
            out.w[e] = to_i8(static_cast<int>(low | high << 4) - 32);
        }
        out.d = half_at(p + 208);
    }
};

}  // namespace pantheon::kernels::PANTHEON_ISA

// The IQ types with blocks of 256. g counts groups of 32 elements, l sub-groups of 8, j elements of a
// sub-group.
#include "kernels/quant/block_rows.h"
#include "kernels/quant/dequantize.h"
#include "kernels/quant/iq_grids.h"

namespace pantheon::kernels::rows {
namespace {

constexpr int kBlock = 256;
constexpr float kIq1Delta = 0.125f;

/// A 7-bit sign code stands for 8 signs: the eighth makes the number of minus signs even.
unsigned expand_signs(unsigned code) {
    return code | static_cast<unsigned>(__builtin_parity(code)) << 7;
}

float sign(unsigned signs, int j) {
    return signs >> j & 1 ? -1.0f : 1.0f;
}

template <class Grid>
void signed_vector(float scale, const Grid& levels, unsigned signs, int first_sign, float* y) {
    for (std::size_t j = 0; j < levels.size(); ++j)
        y[j] = scale * static_cast<float>(levels[j]) * sign(signs, first_sign + static_cast<int>(j));
}

template <class Grid>
void shifted_vector(float scale, const Grid& levels, float delta, float* y) {
    for (std::size_t j = 0; j < levels.size(); ++j) y[j] = scale * (static_cast<float>(levels[j]) + delta);
}

/// The low nibble of a byte for i = 0, the high one for i = 1.
unsigned nibble(const std::byte* p, int i) {
    return load_u8(p) >> 4 * i & 15u;
}

}  // namespace

void iq2_xxs(const std::byte* src, float* y, std::int64_t n) {
    const auto& grid = iq_grids().iq2_xxs;
    for (; n > 0; n -= kBlock, src += 66, y += kBlock) {
        const float d = half_to_float(load_u16(src));
        for (int g = 0; g < 8; ++g) {
            const std::byte* indices = src + 2 + 8 * g;
            const std::uint32_t word = load_u32(indices + 4);
            const float scale = d * (0.5f + static_cast<float>(word >> 28)) * 0.25f;
            for (int l = 0; l < 4; ++l)
                signed_vector(scale, grid[load_u8(indices + l)], expand_signs(word >> 7 * l & 127), 0,
                              y + 32 * g + 8 * l);
        }
    }
}

void iq2_xs(const std::byte* src, float* y, std::int64_t n) {
    const auto& grid = iq_grids().iq2_xs;
    for (; n > 0; n -= kBlock, src += 74, y += kBlock) {
        const float d = half_to_float(load_u16(src));
        for (int g = 0; g < 8; ++g) {
            for (int l = 0; l < 4; ++l) {
                const unsigned v = load_u16(src + 2 + 2 * (4 * g + l));
                const float scale = d * (0.5f + static_cast<float>(nibble(src + 66 + g, l / 2))) * 0.25f;
                signed_vector(scale, grid[v & 511], expand_signs(v >> 9), 0, y + 32 * g + 8 * l);
            }
        }
    }
}

void iq2_s(const std::byte* src, float* y, std::int64_t n) {
    const auto& grid = iq_grids().iq2_s;
    for (; n > 0; n -= kBlock, src += 82, y += kBlock) {
        const float d = half_to_float(load_u16(src));
        const std::byte *low = src + 2, *signs = src + 34, *high = src + 66, *scales = src + 74;
        for (int g = 0; g < 8; ++g) {
            for (int l = 0; l < 4; ++l) {
                const unsigned index = load_u8(low + 4 * g + l) | (load_u8(high + g) >> 2 * l & 3u) << 8;
                const float scale = d * (0.5f + static_cast<float>(nibble(scales + g, l / 2))) * 0.25f;
                signed_vector(scale, grid[index], load_u8(signs + 4 * g + l), 0, y + 32 * g + 8 * l);
            }
        }
    }
}

void iq3_xxs(const std::byte* src, float* y, std::int64_t n) {
    const auto& grid = iq_grids().iq3_xxs;
    for (; n > 0; n -= kBlock, src += 98, y += kBlock) {
        const float d = half_to_float(load_u16(src));
        for (int g = 0; g < 8; ++g) {
            const std::byte* indices = src + 2 + 8 * g;
            const std::uint32_t word = load_u32(src + 66 + 4 * g);
            const float scale = d * (0.5f + static_cast<float>(word >> 28)) * 0.5f;
            for (int l = 0; l < 4; ++l) {
                const unsigned signs = expand_signs(word >> 7 * l & 127);
                float* out = y + 32 * g + 8 * l;
                signed_vector(scale, grid[load_u8(indices + 2 * l)], signs, 0, out);
                signed_vector(scale, grid[load_u8(indices + 2 * l + 1)], signs, 4, out + 4);
            }
        }
    }
}

void iq3_s(const std::byte* src, float* y, std::int64_t n) {
    const auto& grid = iq_grids().iq3_s;
    for (; n > 0; n -= kBlock, src += 110, y += kBlock) {
        const float d = half_to_float(load_u16(src));
        const std::byte *low = src + 2, *high = src + 66, *signs = src + 74, *scales = src + 106;
        for (int g = 0; g < 8; ++g) {
            const float scale = d * static_cast<float>(1 + 2 * nibble(scales + g / 2, g & 1));
            for (int t = 0; t < 8; ++t) {  // vectors of four elements
                const unsigned index = load_u8(low + 8 * g + t) | (load_u8(high + g) >> t & 1u) << 8;
                signed_vector(scale, grid[index], load_u8(signs + 4 * g + t / 2), 4 * (t & 1),
                              y + 32 * g + 4 * t);
            }
        }
    }
}

void iq1_s(const std::byte* src, float* y, std::int64_t n) {
    const auto& grid = iq_grids().iq1;
    for (; n > 0; n -= kBlock, src += 50, y += kBlock) {
        const float d = half_to_float(load_u16(src));
        for (int g = 0; g < 8; ++g) {
            const unsigned high = load_u16(src + 34 + 2 * g);
            const float scale = d * static_cast<float>(2 * (high >> 12 & 7) + 1);
            const float delta = high & 0x8000 ? -kIq1Delta : kIq1Delta;
            for (int l = 0; l < 4; ++l) {
                const unsigned index = load_u8(src + 2 + 4 * g + l) | (high >> 3 * l & 7) << 8;
                shifted_vector(scale, grid[index], delta, y + 32 * g + 8 * l);
            }
        }
    }
}

void iq1_m(const std::byte* src, float* y, std::int64_t n) {
    const auto& grid = iq_grids().iq1;
    for (; n > 0; n -= kBlock, src += 56, y += kBlock) {
        const std::byte *high = src + 32, *scales = src + 48;
        // The block scale has no field of its own: its four nibbles are the top nibbles of the scale words.
        unsigned d_bits = 0;
        for (int i = 0; i < 4; ++i) d_bits |= static_cast<unsigned>(load_u16(scales + 2 * i) >> 12) << 4 * i;
        const float d = half_to_float(static_cast<std::uint16_t>(d_bits));
        for (int t = 0; t < 32; ++t) {  // vectors of eight elements
            const unsigned h = nibble(high + t / 2, t & 1);
            const int u = t / 2;  // sixteens, one 3-bit scale each
            const unsigned ls = load_u16(scales + 2 * (u / 4)) >> 3 * (u % 4) & 7u;
            const float scale = d * static_cast<float>(2 * ls + 1);
            const float delta = h & 8 ? -kIq1Delta : kIq1Delta;
            shifted_vector(scale, grid[load_u8(src + t) | (h & 7) << 8], delta, y + 8 * t);
        }
    }
}

void iq4_xs(const std::byte* src, float* y, std::int64_t n) {
    for (; n > 0; n -= kBlock, src += 136, y += kBlock) {
        const float d = half_to_float(load_u16(src));
        const unsigned scales_high = load_u16(src + 2);
        for (int g = 0; g < 8; ++g) {
            const int ls = static_cast<int>(nibble(src + 4 + g / 2, g & 1) | (scales_high >> 2 * g & 3) << 4);
            const float scale = d * static_cast<float>(ls - 32);
            const std::byte* quants = src + 8 + 16 * g;
            for (int j = 0; j < 16; ++j) {
                const int q = load_u8(quants + j);
                y[32 * g + j] = scale * static_cast<float>(kIq4Levels[q & 15]);
                y[32 * g + j + 16] = scale * static_cast<float>(kIq4Levels[q >> 4]);
            }
        }
    }
}

}  // namespace pantheon::kernels::rows

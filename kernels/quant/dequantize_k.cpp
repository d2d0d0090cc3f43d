// The K types: blocks of 256 with quantised sub-block scales. The names n (half of the block), j (quarter of
// the half) and l (element of the quarter) are those of the format's description: element e = 128 n + 32 j +
// l.
#include "kernels/quant/block_rows.h"
#include "kernels/quant/dequantize.h"

namespace pantheon::kernels::rows {
namespace {

constexpr int kBlock = 256;

struct ScaleMin {
    int scale, min;
};

/// Pair b of the eight 6-bit (scale, min) pairs packed into 12 bytes, in Q4_K and Q5_K.
ScaleMin scale_min(const std::byte* packed, int b) {
    if (b < 4) return {load_u8(packed + b) & 63, load_u8(packed + b + 4) & 63};
    const int low = load_u8(packed + b + 4);
    return {(low & 15) | (load_u8(packed + b - 4) >> 6) << 4, (low >> 4) | (load_u8(packed + b) >> 6) << 4};
}

}  // namespace

void q2_k(const std::byte* src, float* y, std::int64_t n) {
    for (; n > 0; n -= kBlock, src += 84, y += kBlock) {
        const std::byte* quants = src + 16;
        const float d = half_to_float(load_u16(src + 80));
        const float dmin = half_to_float(load_u16(src + 82));
        for (int b = 0; b < 16; ++b) {
            const int sc = load_u8(src + b);
            const float scale = d * static_cast<float>(sc & 15);
            const float min = dmin * static_cast<float>(sc >> 4);
            const int half = b / 8, shift = 2 * (b % 8 / 2), first = 16 * (b % 2);
            for (int i = 0; i < 16; ++i) {
                const int q = load_u8(quants + 32 * half + first + i) >> shift & 3;
                y[16 * b + i] = scale * static_cast<float>(q) - min;
            }
        }
    }
}

void q3_k(const std::byte* src, float* y, std::int64_t n) {
    for (; n > 0; n -= kBlock, src += 110, y += kBlock) {
        const std::byte *high_bits = src, *quants = src + 32, *scales = src + 96;
        const float d = half_to_float(load_u16(src + 108));
        for (int b = 0; b < 16; ++b) {
            const int low = load_u8(scales + b % 8) >> 4 * (b / 8) & 15;
            const int high = load_u8(scales + 8 + b % 4) >> 2 * (b / 4) & 3;
            const float scale = d * static_cast<float>((low | high << 4) - 32);
            const int half = b / 8, j = b % 8 / 2, first = 16 * (b % 2);
            for (int i = 0; i < 16; ++i) {
                const int q = load_u8(quants + 32 * half + first + i) >> 2 * j & 3;
                const int bit = load_u8(high_bits + first + i) >> (4 * half + j) & 1;
                y[16 * b + i] = scale * static_cast<float>(q - (bit ? 0 : 4));
            }
        }
    }
}

void q4_k(const std::byte* src, float* y, std::int64_t n) {
    for (; n > 0; n -= kBlock, src += 144, y += kBlock) {
        const float d = half_to_float(load_u16(src));
        const float dmin = half_to_float(load_u16(src + 2));
        for (int b = 0; b < 8; ++b) {
            const ScaleMin sm = scale_min(src + 4, b);
            const float scale = d * static_cast<float>(sm.scale), min = dmin * static_cast<float>(sm.min);
            const std::byte* quants = src + 16 + 32 * (b / 2);
            const int shift = 4 * (b % 2);
            for (int l = 0; l < 32; ++l) {
                const int q = load_u8(quants + l) >> shift & 15;
                y[32 * b + l] = scale * static_cast<float>(q) - min;
            }
        }
    }
}

void q5_k(const std::byte* src, float* y, std::int64_t n) {
    for (; n > 0; n -= kBlock, src += 176, y += kBlock) {
        const float d = half_to_float(load_u16(src));
        const float dmin = half_to_float(load_u16(src + 2));
        const std::byte* high_bits = src + 16;
        for (int b = 0; b < 8; ++b) {
            const ScaleMin sm = scale_min(src + 4, b);
            const float scale = d * static_cast<float>(sm.scale), min = dmin * static_cast<float>(sm.min);
            const std::byte* quants = src + 48 + 32 * (b / 2);
            const int shift = 4 * (b % 2);
            for (int l = 0; l < 32; ++l) {
                const int low = load_u8(quants + l) >> shift & 15;
                const int high = (load_u8(high_bits + l) >> b & 1) << 4;
                y[32 * b + l] = scale * static_cast<float>(low | high) - min;
            }
        }
    }
}

void q6_k(const std::byte* src, float* y, std::int64_t n) {
    for (; n > 0; n -= kBlock, src += 210, y += kBlock) {
        const std::byte *low_bits = src, *high_bits = src + 128, *scales = src + 192;
        const float d = half_to_float(load_u16(src + 208));
        for (int b = 0; b < 16; ++b) {
            const float scale = d * static_cast<float>(load_i8(scales + b));
            const int half = b / 8, j = b % 8 / 2, first = 16 * (b % 2);
            for (int i = 0; i < 16; ++i) {
                const int l = first + i;
                const int low = load_u8(low_bits + 64 * half + 32 * (j & 1) + l) >> 4 * (j >> 1) & 15;
                const int high = (load_u8(high_bits + 32 * half + l) >> 2 * j & 3) << 4;
                y[16 * b + i] = scale * static_cast<float>((low | high) - 32);
            }
        }
    }
}

}  // namespace pantheon::kernels::rows

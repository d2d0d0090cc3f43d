// Types with blocks of 32. Element e of a nibble type sits in byte e % 16, low nibble for e < 16.
#include "kernels/quant/block_rows.h"
#include "kernels/quant/dequantize.h"

namespace pantheon::kernels::rows {
namespace {

constexpr int kBlock = 32;

/// 2^(e - 128): the block scale of MXFP4 with the half that kFp4Doubled lacks. Subnormal for e < 2.
float mxfp4_scale(std::uint8_t e) {
    const std::uint32_t bits = e < 2 ? 0x00200000u << e : (e - 1u) << 23;
    float f;
    std::memcpy(&f, &bits, sizeof f);
    return f;
}

}  // namespace

void q4_0(const std::byte* src, float* y, std::int64_t n) {
    for (; n > 0; n -= kBlock, src += 18, y += kBlock) {
        const float d = half_to_float(load_u16(src));
        for (int j = 0; j < 16; ++j) {
            const int q = load_u8(src + 2 + j);
            y[j] = static_cast<float>((q & 15) - 8) * d;
            y[j + 16] = static_cast<float>((q >> 4) - 8) * d;
        }
    }
}

void q4_1(const std::byte* src, float* y, std::int64_t n) {
    for (; n > 0; n -= kBlock, src += 20, y += kBlock) {
        const float d = half_to_float(load_u16(src));
        const float m = half_to_float(load_u16(src + 2));
        for (int j = 0; j < 16; ++j) {
            const int q = load_u8(src + 4 + j);
            y[j] = static_cast<float>(q & 15) * d + m;
            y[j + 16] = static_cast<float>(q >> 4) * d + m;
        }
    }
}

void q5_0(const std::byte* src, float* y, std::int64_t n) {
    for (; n > 0; n -= kBlock, src += 22, y += kBlock) {
        const float d = half_to_float(load_u16(src));
        const std::uint32_t high = load_u32(src + 2);
        for (int j = 0; j < 16; ++j) {
            const int q = load_u8(src + 6 + j);
            const int h0 = static_cast<int>(high >> j & 1) << 4;
            const int h1 = static_cast<int>(high >> (j + 16) & 1) << 4;
            y[j] = static_cast<float>(((q & 15) | h0) - 16) * d;
            y[j + 16] = static_cast<float>(((q >> 4) | h1) - 16) * d;
        }
    }
}

void q5_1(const std::byte* src, float* y, std::int64_t n) {
    for (; n > 0; n -= kBlock, src += 24, y += kBlock) {
        const float d = half_to_float(load_u16(src));
        const float m = half_to_float(load_u16(src + 2));
        const std::uint32_t high = load_u32(src + 4);
        for (int j = 0; j < 16; ++j) {
            const int q = load_u8(src + 8 + j);
            const int h0 = static_cast<int>(high >> j & 1) << 4;
            const int h1 = static_cast<int>(high >> (j + 16) & 1) << 4;
            y[j] = static_cast<float>((q & 15) | h0) * d + m;
            y[j + 16] = static_cast<float>((q >> 4) | h1) * d + m;
        }
    }
}

void q8_0(const std::byte* src, float* y, std::int64_t n) {
    for (; n > 0; n -= kBlock, src += 34, y += kBlock) {
        const float d = half_to_float(load_u16(src));
        for (int j = 0; j < kBlock; ++j) y[j] = static_cast<float>(load_i8(src + 2 + j)) * d;
    }
}

void iq4_nl(const std::byte* src, float* y, std::int64_t n) {
    for (; n > 0; n -= kBlock, src += 18, y += kBlock) {
        const float d = half_to_float(load_u16(src));
        for (int j = 0; j < 16; ++j) {
            const int q = load_u8(src + 2 + j);
            y[j] = d * static_cast<float>(kIq4Levels[q & 15]);
            y[j + 16] = d * static_cast<float>(kIq4Levels[q >> 4]);
        }
    }
}

void mxfp4(const std::byte* src, float* y, std::int64_t n) {
    for (; n > 0; n -= kBlock, src += 17, y += kBlock) {
        const float d = mxfp4_scale(load_u8(src));
        for (int j = 0; j < 16; ++j) {
            const int q = load_u8(src + 1 + j);
            y[j] = static_cast<float>(kFp4Doubled[q & 15]) * d;
            y[j + 16] = static_cast<float>(kFp4Doubled[q >> 4]) * d;
        }
    }
}

}  // namespace pantheon::kernels::rows

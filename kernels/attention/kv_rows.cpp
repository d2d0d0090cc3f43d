#include "kernels/attention/kv_rows.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/quant/dequantize.h"

namespace pantheon::kernels {
namespace {

constexpr float kRound = 12582912.0f;  // 1.5 · 2^23: added and taken away it rounds half to even

std::byte* put_half(std::byte* to, float value) {
    const std::uint16_t half = float_to_half(value);
    std::memcpy(to, &half, sizeof half);
    return to + sizeof half;
}

/// The value with the largest magnitude, the first of several; NaN if one is not finite.
float largest_of(const float* x) {
    float largest = 0, finite = 0;
    for (int i = 0; i < kKvBlock; ++i) {
        finite += x[i] * 0.0f;
        if (std::fabs(x[i]) > std::fabs(largest)) largest = x[i];
    }
    return finite == 0.0f ? largest : std::numeric_limits<float>::quiet_NaN();
}

/// x · scale rounded half to even, for |x · scale| < 2^22.
int rounded(float x, float scale) {
    const float shifted = x * scale + kRound;
    return static_cast<int>(shifted - kRound);
}

/// 0 where 1 / d overflows: such a block is one of zeros.
float inverse(float d) {
    const float inverted = 1.0f / d;
    return std::isfinite(inverted) ? inverted : 0.0f;
}

void store_q8_0(const float* x, std::byte* to) {
    const float d = std::fabs(largest_of(x)) / 127.0f;
    const float scale = inverse(d);
    to = put_half(to, d);
    for (int i = 0; i < kKvBlock; ++i)
        to[i] = scale == 0.0f ? std::byte{0} : static_cast<std::byte>(rounded(x[i], scale) & 0xFF);
}

// Steps from 0 to the largest value. Sixteen levels are so few that cutting it off, or leaving an end of the
// range free, often makes the whole block more exact: a tenth less squared error than 8 alone.
constexpr float kStepsToLargest[] = {8.0f, 7.6f, 8.4f, 7.2f, 8.8f};

void store_q4_0(const float* x, std::byte* to) {
    const float largest = largest_of(x);
    float d = std::isnan(largest) ? largest : 0.0f, best = 0;
    int q[kKvBlock] = {};
    for (const float steps : kStepsToLargest) {
        const float scale = inverse(largest / -steps);
        if (scale == 0.0f) break;
        int tried[kKvBlock];
        float xq = 0, qq = 0;
        for (int i = 0; i < kKvBlock; ++i) {
            tried[i] = std::clamp(rounded(x[i], scale), -8, 7);
            xq += x[i] * static_cast<float>(tried[i]);
            qq += static_cast<float>(tried[i] * tried[i]);
        }
        // With d = xq / qq the squared error is Σ x² − xq² / qq.
        const float gain = xq / largest * (xq / largest) / qq;
        if (gain <= best) continue;
        best = gain;
        d = xq / qq;
        std::copy_n(tried, kKvBlock, q);
    }
    to = put_half(to, d);
    for (int i = 0; i < kKvBlock / 2; ++i)
        to[i] = static_cast<std::byte>((q[i] + 8) | (q[i + kKvBlock / 2] + 8) << 4);
}

}  // namespace

void store_kv_row(KvRowType type, const float* x, int head_dim, std::byte* row) {
    if (type == KvRowType::f32) {
        std::memcpy(row, x, static_cast<std::size_t>(head_dim) * sizeof(float));
        return;
    }
    if (type == KvRowType::f16) {
        for (int i = 0; i < head_dim; ++i) row = put_half(row, x[i]);
        return;
    }
    const std::size_t block_bytes = kv_row_bytes(type, kKvBlock);
    for (int i = 0; i < head_dim; i += kKvBlock, row += block_bytes) {
        float padded[kKvBlock] = {};
        const float* block = x + i;
        if (head_dim - i < kKvBlock) {
            std::copy_n(block, head_dim - i, padded);
            block = padded;
        }
        type == KvRowType::q8_0 ? store_q8_0(block, row) : store_q4_0(block, row);
    }
}

void load_kv_row(KvRowType type, const std::byte* row, int head_dim, float* x) {
    if (type == KvRowType::f32) return dequantize_row(WeightType::f32, row, x, head_dim);
    if (type == KvRowType::f16) return dequantize_row(WeightType::f16, row, x, head_dim);
    const WeightType blocks = type == KvRowType::q8_0 ? WeightType::q8_0 : WeightType::q4_0;
    const int n_whole = head_dim / kKvBlock * kKvBlock;
    dequantize_row(blocks, row, x, n_whole);
    if (n_whole == head_dim) return;
    float last[kKvBlock];
    dequantize_row(blocks, row + kv_row_bytes(type, n_whole), last, kKvBlock);
    std::copy_n(last, head_dim - n_whole, x + n_whole);
}

}  // namespace pantheon::kernels

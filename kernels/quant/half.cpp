// IEEE half precision in integer arithmetic: no instruction set beyond the baseline is assumed.
#include <cstring>

#include "kernels/quant/block_rows.h"
#include "kernels/quant/dequantize.h"

namespace pantheon::kernels {
namespace {

float from_bits(std::uint32_t bits) {
    float f;
    std::memcpy(&f, &bits, sizeof f);
    return f;
}

std::uint32_t to_bits(float f) {
    std::uint32_t bits;
    std::memcpy(&bits, &f, sizeof bits);
    return bits;
}

inline float expand(std::uint16_t h) {
    const std::uint32_t sign = static_cast<std::uint32_t>(h & 0x8000) << 16;
    const std::uint32_t magnitude = h & 0x7FFF;
    if (magnitude >= 0x7C00) return from_bits(sign | 0x7F800000 | (magnitude & 0x3FF) << 13);  // Inf, NaN
    if (magnitude >= 0x0400) return from_bits(sign | ((magnitude << 13) + (112u << 23)));
    // Zero and subnormals: magnitude * 2^-24, exact.
    const float value = static_cast<float>(magnitude) * from_bits(103u << 23);
    return from_bits(sign | to_bits(value));
}

}  // namespace

float half_to_float(std::uint16_t h) {
    return expand(h);
}

std::uint16_t float_to_half(float f) {
    const std::uint32_t bits = to_bits(f);
    const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000);
    const std::uint32_t magnitude = bits & 0x7FFFFFFF;
    if (magnitude > 0x7F800000) return static_cast<std::uint16_t>(sign | 0x7E00 | (magnitude >> 13 & 0x1FF));
    if (magnitude >= 0x477FF000)
        return static_cast<std::uint16_t>(sign | 0x7C00);  // rounds to 2^16 or beyond
    if (magnitude < 0x33000001) return sign;               // at most 2^-25, which ties to even zero
    std::uint32_t mantissa;
    int drop;  // low bits of the mantissa that do not fit
    if (magnitude >= 0x38800000) {
        mantissa = magnitude - (112u << 23);
        drop = 13;
    } else {
        const int exponent = static_cast<int>(magnitude >> 23);
        mantissa = (magnitude & 0x7FFFFF) | 0x800000;
        drop = 126 - exponent;
    }
    const std::uint32_t kept = mantissa >> drop;
    const std::uint32_t rest = mantissa & ((1u << drop) - 1);
    const std::uint32_t half_way = 1u << (drop - 1);
    const bool is_rounded_up = rest > half_way || (rest == half_way && (kept & 1));
    // A carry out of the mantissa moves into the exponent, which is what rounding up means there.
    return static_cast<std::uint16_t>(sign | (kept + (is_rounded_up ? 1 : 0)));
}

namespace rows {

void f32(const std::byte* src, float* y, std::int64_t n) {
    std::memcpy(y, src, static_cast<std::size_t>(n) * sizeof(float));
}

void f16(const std::byte* src, float* y, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = expand(load_u16(src + 2 * i));
}

void bf16(const std::byte* src, float* y, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i)
        y[i] = from_bits(static_cast<std::uint32_t>(load_u16(src + 2 * i)) << 16);
}

}  // namespace rows
}  // namespace pantheon::kernels

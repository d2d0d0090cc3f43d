// Inside kernels/quant only: one row function per weight type, and unaligned little-endian loads for them.
// The element order and the formulas are those of the file format; each float expression keeps the operand
// order of the format's reference decoder, because the result must have the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace pantheon::kernels::rows {

inline std::uint8_t load_u8(const std::byte* p) {
    return static_cast<std::uint8_t>(*p);
}
inline std::int8_t load_i8(const std::byte* p) {
    return static_cast<std::int8_t>(*p);
}
inline std::uint16_t load_u16(const std::byte* p) {
    std::uint16_t v;
    std::memcpy(&v, p, sizeof v);
    return v;
}
inline std::uint32_t load_u32(const std::byte* p) {
    std::uint32_t v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

/// The 16 levels of IQ4_NL and IQ4_XS.
inline constexpr std::int8_t kIq4Levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                               1,    13,   25,  38,  53,  69,  89,  113};
/// The 16 values of a 4-bit float (E2M1), doubled so that they are integers; the scale carries the missing
/// half.
inline constexpr std::int8_t kFp4Doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

using RowFunction = void(const std::byte* src, float* y, std::int64_t n);
RowFunction f32, f16, bf16;
RowFunction q4_0, q4_1, q5_0, q5_1, q8_0, iq4_nl, mxfp4;
RowFunction q2_k, q3_k, q4_k, q5_k, q6_k;
RowFunction iq2_xxs, iq2_xs, iq2_s, iq3_xxs, iq3_s, iq1_s, iq1_m, iq4_xs;

}  // namespace pantheon::kernels::rows

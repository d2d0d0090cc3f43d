// Weight blocks as integers: what a quantised block is before it is multiplied by its scales. The products of
// these integers with quantised activations are exact, which is what makes every kernel give the same bits.
#pragma once

#include "kernels/cpu/vec8.h"
#include "kernels/quant/iq_grids.h"

namespace pantheon::kernels::PANTHEON_ISA {

inline unsigned byte_at(const std::byte* p) {
    return static_cast<unsigned>(*p);
}
inline int signed_byte_at(const std::byte* p) {
    return static_cast<std::int8_t>(*p);
}
inline unsigned u16_at(const std::byte* p) {
    std::uint16_t v;
    std::memcpy(&v, p, sizeof v);
    return v;
}
inline std::uint32_t u32_at(const std::byte* p) {
    std::uint32_t v;
    std::memcpy(&v, p, sizeof v);
    return v;
}
/// The low nibble for i = 0, the high one for i = 1.
inline unsigned nibble_at(const std::byte* p, int i) {
    return byte_at(p) >> 4 * i & 15u;
}
inline std::int8_t to_i8(int v) {
    return static_cast<std::int8_t>(v);
}
inline std::int16_t to_i16(int v) {
    return static_cast<std::int16_t>(v);
}

/// A block of 256: element e = d · scale[e / 16] · w[e] − dmin · min[e / 16].
struct Ints256 {
    alignas(32) std::int8_t w[256];
    alignas(32) std::int16_t scale[16];
    alignas(32) std::int16_t min[16];
    float d, dmin;
};

/// A block of 32: element e = d · w[e] + m.
struct Ints32 {
    alignas(32) std::int8_t w[32];
    float d, m;
};

inline constexpr std::int8_t kIq4Levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                               1,    13,   25,  38,  53,  69,  89,  113};
/// Values of a 4-bit float (E2M1), doubled; the scale carries the missing half.
inline constexpr std::int8_t kFp4Doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/// 2^(e − 128). Subnormal for e < 2.
inline float mxfp4_scale(unsigned e) {
    const std::uint32_t bits = e < 2 ? 0x00200000u << e : (e - 1u) << 23;
    float f;
    std::memcpy(&f, &bits, sizeof f);
    return f;
}

// ---- blocks of 32: element e sits in byte e % 16, low nibble for e < 16 ----

struct Q8_0 {
    static constexpr int kBytes = 34;
    static constexpr bool kHasMin = false;
    static void unpack(const std::byte* p, Ints32& out) {
        out.d = half_at(p);
        std::memcpy(out.w, p + 2, 32);
    }
};
struct Q4_0 {
    static constexpr int kBytes = 18;
    static constexpr bool kHasMin = false;
    static void unpack(const std::byte* p, Ints32& out) {
        out.d = half_at(p);
        for (int e = 0; e < 32; ++e)
            out.w[e] = to_i8(static_cast<int>(nibble_at(p + 2 + e % 16, e / 16)) - 8);
    }
};
struct Q4_1 {
    static constexpr int kBytes = 20;
    static constexpr bool kHasMin = true;
    static void unpack(const std::byte* p, Ints32& out) {
        out.d = half_at(p);
        out.m = half_at(p + 2);
        for (int e = 0; e < 32; ++e) out.w[e] = to_i8(static_cast<int>(nibble_at(p + 4 + e % 16, e / 16)));
    }
};
struct Q5_0 {
    static constexpr int kBytes = 22;
    static constexpr bool kHasMin = false;
    static void unpack(const std::byte* p, Ints32& out) {
        out.d = half_at(p);
        const std::uint32_t high = u32_at(p + 2);
        for (int e = 0; e < 32; ++e)
            out.w[e] =
                to_i8(static_cast<int>(nibble_at(p + 6 + e % 16, e / 16) | (high >> e & 1u) << 4) - 16);
    }
};
struct Q5_1 {
    static constexpr int kBytes = 24;
    static constexpr bool kHasMin = true;
    static void unpack(const std::byte* p, Ints32& out) {
        out.d = half_at(p);
        out.m = half_at(p + 2);
        const std::uint32_t high = u32_at(p + 4);
        for (int e = 0; e < 32; ++e)
            out.w[e] = to_i8(static_cast<int>(nibble_at(p + 8 + e % 16, e / 16) | (high >> e & 1u) << 4));
    }
};
struct Iq4Nl {
    static constexpr int kBytes = 18;
    static constexpr bool kHasMin = false;
    static void unpack(const std::byte* p, Ints32& out) {
        out.d = half_at(p);
        for (int e = 0; e < 32; ++e) out.w[e] = kIq4Levels[nibble_at(p + 2 + e % 16, e / 16)];
    }
};
struct Mxfp4 {
    static constexpr int kBytes = 17;
    static constexpr bool kHasMin = false;
    static void unpack(const std::byte* p, Ints32& out) {
        out.d = mxfp4_scale(byte_at(p));
        for (int e = 0; e < 32; ++e) out.w[e] = kFp4Doubled[nibble_at(p + 1 + e % 16, e / 16)];
    }
};

}  // namespace pantheon::kernels::PANTHEON_ISA

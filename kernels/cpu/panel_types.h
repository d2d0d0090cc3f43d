// What the bytes of a packed panel mean, type by type (layout: kernels/linear/weight_panels.h), in registers.
#pragma once

#include "kernels/cpu/block_ints.h"
#include "kernels/cpu/panel_simd.h"

#if defined(PANTHEON_HAS_AVX2)

namespace pantheon::kernels::PANTHEON_ISA {

constexpr int kR = kPanelRows;

inline Bytes low_nibbles(Bytes v) {
    return both(v, all_bytes(15));
}
inline Bytes high_nibbles(Bytes v) {
    return both(right<4>(v), all_bytes(15));
}
/// Bits first … first + n − 1 of each byte, moved to bit `to`.
template <int first, int n, int to>
inline Bytes bits(Bytes v) {
    constexpr int mask = ((1 << n) - 1) << to;
    if constexpr (first <= to)
        return both(left<to - first>(v), all_bytes(mask));
    else
        return both(right<first - to>(v), all_bytes(mask));
}

/// One block's scales as bytes, [pair][row][2]; mins likewise where the type has them.
struct alignas(64) ScaleBytes {
    std::uint8_t scale[16 * kR];
    std::uint8_t min[8 * kR];
};

// Every type below says
//   kHeadBytes, kBodyVectors    per row and block, per group of 32
//   kScalesPerGroup             1 or 2 in each group of 32
//   kPairsPerSum                how many pairs of vectors 16-bit sums can take
//   kIsSigned                   w is signed and needs the sign trick (16-bit sums only)
//   kOffsetBits                 the weight is w − 2^kOffsetBits
//   scales(head, bytes)         where the block's scales are as bytes
//   Group(body).pair<i>         vectors 2 i and 2 i + 1 of a group

/// Four vectors of nibbles.
inline void nibble_pair(const std::byte* vectors, int i, Bytes& even, Bytes& odd) {
    const Bytes v = load_bytes(vectors + 4 * kR * i);
    even = low_nibbles(v);
    odd = high_nibbles(v);
}

struct PanelQ4K {
    static constexpr int kHeadBytes = 16, kBodyVectors = 4, kScalesPerGroup = 1, kPairsPerSum = 4;
    static constexpr bool kHasMin = true, kIsSigned = false, kHasSignedScales = false;
    static constexpr int kOffsetBits = 0;

    static const std::uint8_t* scales(const std::byte* head, ScaleBytes& bytes) {
        const Bytes first = load_bytes(head + 4 * kR), second = load_bytes(head + 8 * kR);
        const Bytes high = load_bytes(head + 12 * kR);
        store_bytes(bytes.scale, either(low_nibbles(first), bits<0, 2, 4>(high)));
        store_bytes(bytes.scale + 4 * kR, either(low_nibbles(second), bits<4, 2, 4>(high)));
        store_bytes(bytes.min, either(high_nibbles(first), bits<2, 2, 4>(high)));
        store_bytes(bytes.min + 4 * kR, either(high_nibbles(second), bits<6, 2, 4>(high)));
        return bytes.scale;
    }
    struct Group {
        const std::byte* p;
        Group() = default;
        explicit Group(const std::byte* body) : p(body) {}
        template <int i>
        void pair(Bytes& even, Bytes& odd) const {
            nibble_pair(p, i, even, odd);
        }
    };
};

struct PanelQ5K : PanelQ4K {
    static constexpr int kBodyVectors = 5, kPairsPerSum = 2;

    struct Group {
        const std::byte* p;
        Bytes fifth;
        Group() = default;
        explicit Group(const std::byte* body) : p(body + 4 * kR), fifth(load_bytes(body)) {}
        template <int i>
        void pair(Bytes& even, Bytes& odd) const {
            nibble_pair(p, i, even, odd);
            even = either(even, bits<2 * i, 1, 4>(fifth));
            odd = either(odd, bits<2 * i + 1, 1, 4>(fifth));
        }
    };
};

struct PanelQ6K {
    static constexpr int kHeadBytes = 18, kBodyVectors = 6, kScalesPerGroup = 2, kPairsPerSum = 1;
    static constexpr bool kHasMin = false, kIsSigned = false, kHasSignedScales = true;
    static constexpr int kOffsetBits = 5;

    static const std::uint8_t* scales(const std::byte* head, ScaleBytes&) {
        return reinterpret_cast<const std::uint8_t*>(head + 2 * kR);
    }
    struct Group {
        const std::byte* p;
        Bytes upper[2];
        Group() = default;
        explicit Group(const std::byte* body)
            : p(body + 8 * kR), upper{load_bytes(body), load_bytes(body + 4 * kR)} {}
        template <int i>
        void pair(Bytes& even, Bytes& odd) const {
            constexpr int bit = 4 * (i % 2);
            nibble_pair(p, i, even, odd);
            even = either(even, bits<bit, 2, 4>(upper[i / 2]));
            odd = either(odd, bits<bit + 2, 2, 4>(upper[i / 2]));
        }
    };
};

struct PanelQ3K {
    static constexpr int kHeadBytes = 14, kBodyVectors = 3, kScalesPerGroup = 2, kPairsPerSum = 2;
    static constexpr bool kHasMin = false, kIsSigned = false, kHasSignedScales = true;
    static constexpr int kOffsetBits = 2;

    static const std::uint8_t* scales(const std::byte* head, ScaleBytes& bytes) {
        const Bytes first = load_bytes(head + 2 * kR), second = load_bytes(head + 6 * kR);
        const Bytes high = load_bytes(head + 10 * kR), bias = all_bytes(32);
        store_bytes(bytes.scale, minus_bytes(either(low_nibbles(first), bits<0, 2, 4>(high)), bias));
        store_bytes(bytes.scale + 4 * kR,
                    minus_bytes(either(low_nibbles(second), bits<2, 2, 4>(high)), bias));
        store_bytes(bytes.scale + 8 * kR,
                    minus_bytes(either(high_nibbles(first), bits<4, 2, 4>(high)), bias));
        store_bytes(bytes.scale + 12 * kR,
                    minus_bytes(either(high_nibbles(second), bits<6, 2, 4>(high)), bias));
        return bytes.scale;
    }
    struct Group {
        Bytes upper, lower[2];
        Group() = default;
        explicit Group(const std::byte* body)
            : upper(load_bytes(body)), lower{load_bytes(body + 4 * kR), load_bytes(body + 8 * kR)} {}
        template <int i>
        void pair(Bytes& even, Bytes& odd) const {
            constexpr int bit = 4 * (i % 2);
            even = either(bits<bit, 2, 0>(lower[i / 2]), bits<2 * i, 1, 2>(upper));
            odd = either(bits<bit + 2, 2, 0>(lower[i / 2]), bits<2 * i + 1, 1, 2>(upper));
        }
    };
};

/// Levels as unsigned bytes: 128 more than kIq4Levels.
inline constexpr std::int8_t kIq4Raised[16] = {
    1,         24,        45,        63,        79,        93,        106,       118,
    129 - 256, 141 - 256, 153 - 256, 166 - 256, 181 - 256, 197 - 256, 217 - 256, 241 - 256};

struct PanelIq4Xs {
    static constexpr int kHeadBytes = 8, kBodyVectors = 4, kScalesPerGroup = 1, kPairsPerSum = 4;
    static constexpr bool kHasMin = false, kIsSigned = !kHasWideSums, kHasSignedScales = true;
    static constexpr int kOffsetBits = kHasWideSums ? 7 : 0;

    static const std::uint8_t* scales(const std::byte* head, ScaleBytes& bytes) {
        const Bytes low = load_bytes(head + 2 * kR), high = half_and_shifted(head + 6 * kR);
        const Bytes bias = all_bytes(32);
        store_bytes(bytes.scale, minus_bytes(either(low_nibbles(low), bits<0, 2, 4>(high)), bias));
        store_bytes(bytes.scale + 4 * kR, minus_bytes(either(high_nibbles(low), bits<4, 2, 4>(high)), bias));
        return bytes.scale;
    }
    struct Group {
        const std::byte* p;
        Group() = default;
        explicit Group(const std::byte* body) : p(body) {}
        template <int i>
        void pair(Bytes& even, Bytes& odd) const {
            const std::int8_t* levels = kHasWideSums ? kIq4Raised : kIq4Levels;
            nibble_pair(p, i, even, odd);
            even = look_up(levels, even);
            odd = look_up(levels, odd);
        }
    };
};

}  // namespace pantheon::kernels::PANTHEON_ISA

#endif

#include "kernels/linear/weight_panels.h"

#include <cassert>
#include <cstring>

namespace pantheon::kernels {
namespace {

constexpr std::uint32_t kNibbles = 0x0F0F0F0Fu, kPairs = 0x03030303u, kBits = 0x01010101u;

std::uint32_t word_at(const std::byte* p) {
    std::uint32_t v;
    std::memcpy(&v, p, sizeof v);
    return v;
}
unsigned byte_at(const std::byte* p) {
    return static_cast<unsigned>(*p);
}

/// The places of one row in a panel.
struct RowPlace {
    std::byte* head;  // of the block
    std::byte* body;
    int n_rows, row;

    void put_half(int i, const std::byte* half) const { std::memcpy(head + 2 * (i * n_rows + row), half, 2); }
    /// Byte [pair][row][i] of the table that begins first · n_rows bytes into the head.
    void put_scale(int first, int pair, int i, unsigned value) const {
        head[first * n_rows + 2 * (pair * n_rows + row) + i] = static_cast<std::byte>(value);
    }
    void put_vector(int i, std::uint32_t word) const {
        std::memcpy(body + (i * n_rows + row) * 4, &word, sizeof word);
    }
    /// Four vectors of nibbles from eight words of bytes below 16 (or their low nibbles).
    void put_nibbles(int first, const std::uint32_t* words) const {
        for (int i = 0; i < 4; ++i)
            put_vector(first + i, (words[2 * i] & kNibbles) | (words[2 * i + 1] & kNibbles) << 4);
    }
};

/// Word k of a block: elements 4 k … 4 k + 3 as unsigned bytes.
struct Words {
    std::uint32_t w[64];
};

struct PackQ4K {
    static constexpr int kHeadBytes = 16, kBodyVectors = 4;

    /// The twelve bytes of 6-bit scales and mins that Q4_K and Q5_K share.
    static void put_scales(const std::byte* packed, const RowPlace& place) {
        unsigned scale[8], min[8];
        for (int b = 0; b < 4; ++b) {
            scale[b] = byte_at(packed + b) & 63u;
            min[b] = byte_at(packed + b + 4) & 63u;
            const unsigned low = byte_at(packed + b + 8);
            scale[b + 4] = (low & 15u) | byte_at(packed + b) >> 6 << 4;
            min[b + 4] = low >> 4 | byte_at(packed + b + 4) >> 6 << 4;
        }
        const auto high = [&](int b) { return scale[b] >> 4 | min[b] >> 4 << 2; };
        for (int b = 0; b < 8; ++b) place.put_scale(4, b / 2, b % 2, (scale[b] & 15u) | (min[b] & 15u) << 4);
        for (int b = 0; b < 4; ++b) place.put_scale(12, b / 2, b % 2, high(b) | high(b + 4) << 4);
    }
    static void put_head(const std::byte* p, const RowPlace& place) {
        place.put_half(0, p);
        place.put_half(1, p + 2);
        put_scales(p + 4, place);
    }
    static void unpack(const std::byte* p, Words& out) {
        for (int m = 0; m < 4; ++m)
            for (int k = 0; k < 8; ++k) {
                const std::uint32_t q = word_at(p + 16 + 32 * m + 4 * k);
                out.w[16 * m + k] = q & kNibbles;
                out.w[16 * m + 8 + k] = q >> 4 & kNibbles;
            }
    }
    static void put_group(const std::uint32_t* words, const RowPlace& place) { place.put_nibbles(0, words); }
};

struct PackQ5K {
    static constexpr int kHeadBytes = 16, kBodyVectors = 5;

    static void put_head(const std::byte* p, const RowPlace& place) { PackQ4K::put_head(p, place); }
    static void unpack(const std::byte* p, Words& out) {
        for (int m = 0; m < 4; ++m)
            for (int k = 0; k < 8; ++k) {
                const std::uint32_t q = word_at(p + 48 + 32 * m + 4 * k), high = word_at(p + 16 + 4 * k);
                out.w[16 * m + k] = (q & kNibbles) | (high >> 2 * m & kBits) << 4;
                out.w[16 * m + 8 + k] = (q >> 4 & kNibbles) | (high >> (2 * m + 1) & kBits) << 4;
            }
    }
    static void put_group(const std::uint32_t* words, const RowPlace& place) {
        std::uint32_t fifth = 0;
        for (int g = 0; g < 8; ++g) fifth |= (words[g] >> 4 & kBits) << g;
        place.put_vector(0, fifth);
        place.put_nibbles(1, words);
    }
};

struct PackQ6K {
    static constexpr int kHeadBytes = 18, kBodyVectors = 6;

    static void put_head(const std::byte* p, const RowPlace& place) {
        place.put_half(0, p + 208);
        for (int s = 0; s < 16; ++s) place.put_scale(2, s / 2, s % 2, byte_at(p + 192 + s));
    }
    static void unpack(const std::byte* p, Words& out) {
        for (int n = 0; n < 2; ++n)
            for (int j = 0; j < 4; ++j)
                for (int k = 0; k < 8; ++k) {
                    const std::uint32_t low = word_at(p + 64 * n + 32 * (j & 1) + 4 * k);
                    const std::uint32_t high = word_at(p + 128 + 32 * n + 4 * k);
                    out.w[32 * n + 8 * j + k] = (low >> 4 * (j >> 1) & kNibbles) | (high >> 2 * j & kPairs)
                                                                                       << 4;
                }
    }
    static void put_group(const std::uint32_t* words, const RowPlace& place) {
        for (int half = 0; half < 2; ++half) {
            std::uint32_t upper = 0;
            for (int g = 0; g < 4; ++g) upper |= (words[4 * half + g] >> 4 & kPairs) << 2 * g;
            place.put_vector(half, upper);
        }
        place.put_nibbles(2, words);
    }
};

struct PackQ3K {
    static constexpr int kHeadBytes = 14, kBodyVectors = 3;

    static void put_head(const std::byte* p, const RowPlace& place) {
        place.put_half(0, p + 108);
        const std::byte* scales = p + 96;
        unsigned v[16];
        for (int s = 0; s < 16; ++s)
            v[s] = (byte_at(scales + s % 8) >> 4 * (s / 8) & 15u) |
                   (byte_at(scales + 8 + s % 4) >> 2 * (s / 4) & 3u) << 4;
        for (int s = 0; s < 8; ++s) place.put_scale(2, s / 2, s % 2, (v[s] & 15u) | (v[s + 8] & 15u) << 4);
        for (int s = 0; s < 4; ++s) {
            unsigned high = 0;
            for (int k = 0; k < 4; ++k) high |= v[s + 4 * k] >> 4 << 2 * k;
            place.put_scale(10, s / 2, s % 2, high);
        }
    }
    static void unpack(const std::byte* p, Words& out) {
        for (int n = 0; n < 2; ++n)
            for (int j = 0; j < 4; ++j)
                for (int k = 0; k < 8; ++k) {
                    const std::uint32_t low = word_at(p + 32 + 32 * n + 4 * k), high = word_at(p + 4 * k);
                    out.w[32 * n + 8 * j + k] = (low >> 2 * j & kPairs) | (high >> (4 * n + j) & kBits) << 2;
                }
    }
    static void put_group(const std::uint32_t* words, const RowPlace& place) {
        std::uint32_t upper = 0;
        for (int g = 0; g < 8; ++g) upper |= (words[g] >> 2 & kBits) << g;
        place.put_vector(0, upper);
        for (int half = 0; half < 2; ++half) {
            std::uint32_t lower = 0;
            for (int g = 0; g < 4; ++g) lower |= (words[4 * half + g] & kPairs) << 2 * g;
            place.put_vector(1 + half, lower);
        }
    }
};

struct PackIq4Xs {
    static constexpr int kHeadBytes = 8, kBodyVectors = 4;

    static void put_head(const std::byte* p, const RowPlace& place) {
        place.put_half(0, p);
        const unsigned high_bits = byte_at(p + 2) | byte_at(p + 3) << 8;
        const auto low = [&](int b) { return byte_at(p + 4 + b / 2) >> 4 * (b % 2) & 15u; };
        for (int b = 0; b < 4; ++b) place.put_scale(2, b / 2, b % 2, low(b) | low(b + 4) << 4);
        for (int i = 0; i < 2; ++i) {
            unsigned high = 0;
            for (int pair = 0; pair < 4; ++pair) high |= (high_bits >> 2 * (2 * pair + i) & 3u) << 2 * pair;
            place.put_scale(6, 0, i, high);
        }
    }
    static void unpack(const std::byte* p, Words& out) {
        for (int g = 0; g < 8; ++g)
            for (int k = 0; k < 4; ++k) {
                const std::uint32_t q = word_at(p + 8 + 16 * g + 4 * k);
                out.w[8 * g + k] = q & kNibbles;
                out.w[8 * g + 4 + k] = q >> 4 & kNibbles;
            }
    }
    static void put_group(const std::uint32_t* words, const RowPlace& place) { place.put_nibbles(0, words); }
};

/// Block by block for blocks of 256; each has eight groups of 32.
template <class Pack>
void pack_row_256(const PanelLayout& layout, int block_bytes, const std::byte* blocks, int row,
                  std::byte* panel) {
    constexpr int kGroupBytes = 4 * Pack::kBodyVectors;  // a row's
    for (std::int64_t b = 0; b < layout.n_blocks; ++b) {
        const std::byte* block = blocks + b * block_bytes;
        std::byte* head = panel + b * layout.unit_bytes;
        RowPlace place{head, head + layout.head_bytes, layout.n_rows, row};
        Pack::put_head(block, place);
        Words words;
        Pack::unpack(block, words);
        for (int g = 0; g < 8; ++g, place.body += kGroupBytes * layout.n_rows)
            Pack::put_group(words.w + 8 * g, place);
    }
}

void pack_row_q8_0(const PanelLayout& layout, const std::byte* blocks, int row, std::byte* panel) {
    for (std::int64_t b = 0; b < layout.n_blocks; ++b) {
        const std::byte* block = blocks + 34 * b;
        std::byte* unit = panel + b / 2 * layout.unit_bytes;
        const RowPlace place{unit + b % 2 * 2 * layout.n_rows,
                             unit + layout.head_bytes + b % 2 * layout.body_bytes, layout.n_rows, row};
        place.put_half(0, block);
        for (int g = 0; g < 8; ++g) place.put_vector(g, word_at(block + 2 + 4 * g));
    }
}

struct PackSizes {
    int head_bytes, body_bytes;  // of a block, for each row
    int blocks_per_unit;
};

template <class Pack>
constexpr PackSizes sizes_of() {
    return {Pack::kHeadBytes, 4 * Pack::kBodyVectors * 8, 1};
}

PackSizes pack_sizes(WeightType type) {
    switch (type) {
        case WeightType::q3_k:
            return sizes_of<PackQ3K>();
        case WeightType::q4_k:
            return sizes_of<PackQ4K>();
        case WeightType::q5_k:
            return sizes_of<PackQ5K>();
        case WeightType::q6_k:
            return sizes_of<PackQ6K>();
        case WeightType::iq4_xs:
            return sizes_of<PackIq4Xs>();
        case WeightType::q8_0:
            return {2, 32, 2};
        default:
            return {0, 0, 1};
    }
}

}  // namespace

int panel_rows(CpuIsa isa) {
    switch (isa) {
        case CpuIsa::scalar:
            return 0;
        case CpuIsa::avx2:
            return 8;
        case CpuIsa::avx512:
            return 16;
    }
    return 0;
}

bool has_panels(WeightType type, std::int64_t n_in) {
    return pack_sizes(type).body_bytes > 0 && n_in % weight_type_info(type)->block_elems == 0;
}

PanelLayout panel_layout(WeightType type, int n_rows, std::int64_t n_in) {
    const PackSizes sizes = pack_sizes(type);
    PanelLayout layout;
    layout.n_rows = n_rows;
    layout.n_blocks = n_in / weight_type_info(type)->block_elems;
    layout.blocks_per_unit = sizes.blocks_per_unit;
    const std::int64_t vector_bytes = 4 * n_rows;
    const std::int64_t heads = static_cast<std::int64_t>(sizes.head_bytes) * sizes.blocks_per_unit * n_rows;
    layout.head_bytes = (heads + vector_bytes - 1) / vector_bytes * vector_bytes;
    layout.body_bytes = static_cast<std::int64_t>(sizes.body_bytes) * n_rows;
    layout.unit_bytes = layout.head_bytes + sizes.blocks_per_unit * layout.body_bytes;
    const std::int64_t n_units = (layout.n_blocks + sizes.blocks_per_unit - 1) / sizes.blocks_per_unit;
    layout.bytes = n_units * layout.unit_bytes;
    return layout;
}

void pack_panel(WeightType type, const PanelLayout& layout, const std::byte* rows, std::int64_t row_bytes,
                int n, std::byte* panel) {
    assert(n >= 1 && n <= layout.n_rows);
    const int block_bytes = weight_type_info(type)->block_bytes;
    if (n < layout.n_rows || layout.n_blocks % layout.blocks_per_unit != 0)
        std::memset(panel, 0, static_cast<std::size_t>(layout.bytes));
    for (int r = 0; r < n; ++r) {
        const std::byte* blocks = rows + r * row_bytes;
        switch (type) {
            case WeightType::q3_k:
                pack_row_256<PackQ3K>(layout, block_bytes, blocks, r, panel);
                break;
            case WeightType::q4_k:
                pack_row_256<PackQ4K>(layout, block_bytes, blocks, r, panel);
                break;
            case WeightType::q5_k:
                pack_row_256<PackQ5K>(layout, block_bytes, blocks, r, panel);
                break;
            case WeightType::q6_k:
                pack_row_256<PackQ6K>(layout, block_bytes, blocks, r, panel);
                break;
            case WeightType::iq4_xs:
                pack_row_256<PackIq4Xs>(layout, block_bytes, blocks, r, panel);
                break;
            case WeightType::q8_0:
                pack_row_q8_0(layout, blocks, r, panel);
                break;
            default:
                assert(false && "a type without panels");
        }
    }
}

}  // namespace pantheon::kernels

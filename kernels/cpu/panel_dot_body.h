// Products of packed panels with a few columns, one panel and up to four columns a pass, eight with the
// registers of AVX-512: from the caches that is no faster, the multiplications of bytes being the bound
// already, but weights that come from memory then arrive while they are used. A panel's rows are the lanes,
// so there are no sums across lanes, and a group of weights is unpacked once for all columns. The results
// have the bits of the row kernels: integer sums are exact, and blocks are added by the same chain of fused
// multiply-adds.
#pragma once

#include <array>
#include <utility>

#include "kernels/cpu/leaves.h"
#include "kernels/cpu/panel_types.h"
#include "kernels/linear/weight_panels.h"

#if defined(PANTHEON_HAS_AVX2)

namespace pantheon::kernels::PANTHEON_ISA {

/// One group of 32 of one panel, for all columns.
template <class Type, int n_columns>
struct GroupSum {
    const std::int8_t* a[n_columns];  // the group's activations
    Ints sums[n_columns];

    template <int i>
    inline __attribute__((always_inline)) void add_pair(const typename Type::Group& group, const Ints* scale,
                                                        Ints* totals) {
        // With wide sums only a change of scale ends a chain.
        constexpr int kPairs = kHasWideSums ? 4 / Type::kScalesPerGroup : Type::kPairsPerSum;
        const Ints& weight = scale[Type::kScalesPerGroup == 2 ? i / 2 : 0];
        Bytes even, odd;
        group.template pair<i>(even, odd);
#if !defined(PANTHEON_ISA_AVX512)
        if constexpr (Type::kIsSigned) {
            for (int c = 0; c < n_columns; ++c) {
                const std::int8_t* at = a[c] + 8 * i;
                totals[c] = add_ints(totals[c], weighed(signed_products(even, four_at(at)), weight));
                totals[c] = add_ints(totals[c], weighed(signed_products(odd, four_at(at + 4)), weight));
            }
            return;
        }
#endif
        for (int c = 0; c < n_columns; ++c) {
            const std::int8_t* at = a[c] + 8 * i;
            sums[c] = add_products(i % kPairs == 0 ? zero_ints() : sums[c], even, four_at(at));
            sums[c] = add_products(sums[c], odd, four_at(at + 4));
            keep_in_register(sums[c]);
            if constexpr ((i + 1) % kPairs == 0) totals[c] = add_ints(totals[c], weighed(sums[c], weight));
        }
    }
};

/// A block of one panel while its groups are added up.
template <class Type, int n_columns>
struct BlockSum {
    Ints totals[n_columns];
    ScaleBytes bytes;
    const std::uint8_t* scales;

    void start(const std::byte* head) {
        scales = Type::scales(head, bytes);
        for (int c = 0; c < n_columns; ++c) totals[c] = zero_ints();
    }
    ScalePair pair(int i) const {
        if constexpr (Type::kHasSignedScales)
            return signed_pair(scales + 2 * kR * i);
        else
            return unsigned_pair(scales + 2 * kR * i);
    }
    void scales_of_group(int g, Ints* scale) const {
        const ScalePair scales_of_two = pair(Type::kScalesPerGroup == 2 ? g : g / 2);
        if constexpr (Type::kScalesPerGroup == 2) {
            scale[0] = even_scale(scales_of_two);
            scale[1] = odd_scale(scales_of_two);
        } else {
            scale[0] = g % 2 == 0 ? even_scale(scales_of_two) : odd_scale(scales_of_two);
        }
    }
    inline __attribute__((always_inline)) void add_group(const std::byte* body, int g, const Column* columns,
                                                         std::int64_t first) {
        Ints scale[2];
        scales_of_group(g, scale);
        GroupSum<Type, n_columns> sum;
        for (int c = 0; c < n_columns; ++c) sum.a[c] = columns[c].q + first + 32 * g;
        const typename Type::Group group(body);
        sum.template add_pair<0>(group, scale, totals);
        sum.template add_pair<1>(group, scale, totals);
        sum.template add_pair<2>(group, scale, totals);
        sum.template add_pair<3>(group, scale, totals);
    }
#if defined(PANTHEON_ISA_AVX512)
    template <int n_groups>
    inline __attribute__((always_inline)) void add_groups(const std::byte* body, int g, const Column* columns,
                                                          std::int64_t first);
#endif
    /// Adds the block to y.
    inline __attribute__((always_inline)) void finish(const std::byte* head, std::int64_t b,
                                                      const Column* columns, Floats* y) {
        const Floats d = load_halves(head);
        for (int c = 0; c < n_columns; ++c) {
            const std::int16_t* sums = columns[c].sums + kSumsPer256 * b;
            const Floats column_d = all_floats(columns[c].d[b]);
            if constexpr (Type::kScalesPerGroup == 1) sums += 16;  // those of 32
            if constexpr (Type::kOffsetBits > 0) {
                Ints offset = zero_ints();
                for (int i = 0; i < 4 * Type::kScalesPerGroup; ++i)
                    offset = add_pair_product(offset, pair(i), two_at(sums + 2 * i));
                totals[c] = minus_ints(totals[c], left_ints<Type::kOffsetBits>(offset));
            }
            y[c] = plus_product(times(d, column_d), to_floats(totals[c]), y[c]);
            if constexpr (Type::kHasMin) {
                Ints min = zero_ints();
                for (int i = 0; i < 4; ++i)
                    min = add_pair_product(min, unsigned_pair(bytes.min + 2 * kR * i), two_at(sums + 2 * i));
                const Floats dmin = load_halves(head + 2 * kR);
                y[c] = minus_product(times(dmin, column_d), to_floats(min), y[c]);
            }
        }
    }
};

#if defined(PANTHEON_ISA_AVX512)

/// Some groups of 32 at once, each part that has a scale with a sum of its own for every column: enough
/// independent chains to hide the latency of the products.
template <class Type, int n_columns, int n_groups>
struct GroupSums {
    static constexpr int kParts = Type::kScalesPerGroup, kPairs = 4 / kParts;
    const std::int8_t* a[n_columns];  // the first group's activations
    Ints sums[n_groups * kParts][n_columns];

    template <int i>
    inline __attribute__((always_inline)) void add_pairs(const typename Type::Group* groups) {
        for (int p = 0; p < n_groups; ++p) add_pair<i>(groups[p], sums[p * kParts], 32 * p);
        if constexpr (kParts == 2)
            for (int p = 0; p < n_groups; ++p)
                add_pair<i + kPairs>(groups[p], sums[p * kParts + 1], 32 * p);
    }

  private:
    template <int i>
    inline __attribute__((always_inline)) void add_pair(const typename Type::Group& group, Ints* sum, int at) {
        Bytes even, odd;
        group.template pair<i>(even, odd);
        for (int c = 0; c < n_columns; ++c)
            sum[c] = add_products(i % kPairs == 0 ? zero_ints() : sum[c], even, four_at(a[c] + at + 8 * i));
        for (int c = 0; c < n_columns; ++c) sum[c] = add_products(sum[c], odd, four_at(a[c] + at + 8 * i + 4));
    }
};

#endif

#if defined(PANTHEON_ISA_AVX512)
template <class Type, int n_columns>
template <int n_groups>
inline __attribute__((always_inline)) void BlockSum<Type, n_columns>::add_groups(const std::byte* body, int g,
                                                                                const Column* columns,
                                                                                std::int64_t first) {
    constexpr int kGroupBytes = Type::kBodyVectors * 4 * kR;
    GroupSums<Type, n_columns, n_groups> of;
    for (int c = 0; c < n_columns; ++c) of.a[c] = columns[c].q + first + 32 * g;
    std::array<typename Type::Group, n_groups> groups = [&]<std::size_t... p>(std::index_sequence<p...>) {
        return std::array<typename Type::Group, n_groups>{typename Type::Group(body + p * kGroupBytes)...};
    }(std::make_index_sequence<n_groups>());
    of.template add_pairs<0>(groups.data());
    of.template add_pairs<1>(groups.data());
    if constexpr (Type::kScalesPerGroup == 1) {
        of.template add_pairs<2>(groups.data());
        of.template add_pairs<3>(groups.data());
    }
    for (int p = 0; p < n_groups; ++p) {
        Ints scale[2];
        scales_of_group(g + p, scale);
        for (int h = 0; h < Type::kScalesPerGroup; ++h)
            for (int c = 0; c < n_columns; ++c)
                totals[c] = add_ints(totals[c], weighed(of.sums[p * Type::kScalesPerGroup + h][c], scale[h]));
    }
}
#endif

/// Types in blocks of 256.
template <class Type, int n_columns>
inline void dot_panel_256(const std::byte* panel, const PanelLayout& layout, const Column* columns,
                          Floats* y) {
    constexpr int kGroupBytes = Type::kBodyVectors * 4 * kR;
    constexpr int kHeadBytes = (Type::kHeadBytes + 3) / 4 * 4 * kR;
    for (int c = 0; c < n_columns; ++c) y[c] = zero_floats();
    for (std::int64_t b = 0; b < layout.n_blocks; ++b) {
        BlockSum<Type, n_columns> sum;
        sum.start(panel);
        const std::byte* body = panel + kHeadBytes;
#if defined(PANTHEON_ISA_AVX512)
        constexpr int kSums = n_columns > 4 ? 2 : n_columns > 2 ? 4 : 8;
        constexpr int kGroups = kSums / Type::kScalesPerGroup;
#pragma GCC unroll 1
        for (int g = 0; g < 8; g += kGroups, body += kGroups * kGroupBytes)
            sum.template add_groups<kGroups>(body, g, columns, 256 * b);
#else
#pragma GCC unroll 1
        for (int g = 0; g < 8; g += 2, body += 2 * kGroupBytes) {
            sum.add_group(body, g, columns, 256 * b);
            sum.add_group(body + kGroupBytes, g + 1, columns, 256 * b);
        }
#endif
        sum.finish(panel, b, columns, y);
        panel = body;
    }
}

#if !defined(PANTHEON_ISA_AVX512)

/// One group of 32 of two panels: a broadcast of activations serves both.
template <class Type, int n_columns>
struct TwoGroupSum {
    const std::int8_t* a[n_columns];
    Ints sums[2][n_columns];

    template <int i>
    inline __attribute__((always_inline)) void add_pair(const typename Type::Group* groups,
                                                        const Ints (*scale)[2],
                                                        BlockSum<Type, n_columns>* blocks) {
        constexpr int kPairs = Type::kPairsPerSum;
        Bytes even[2], odd[2];
        groups[0].template pair<i>(even[0], odd[0]);
        groups[1].template pair<i>(even[1], odd[1]);
#pragma GCC unroll 4
        for (int c = 0; c < n_columns; ++c) {
            const std::int8_t* at = a[c] + 8 * i;
            const Bytes first = broadcast_four(at);
            for (int p = 0; p < 2; ++p)
                sums[p][c] = add_products(i % kPairs == 0 ? zero_ints() : sums[p][c], even[p], first);
            const Bytes second = broadcast_four(at + 4);
            for (int p = 0; p < 2; ++p) {
                sums[p][c] = add_products(sums[p][c], odd[p], second);
                keep_in_register(sums[p][c]);
            }
        }
        if constexpr ((i + 1) % kPairs == 0)
            for (int p = 0; p < 2; ++p) {
                const Ints& weight = scale[p][Type::kScalesPerGroup == 2 ? i / 2 : 0];
#pragma GCC unroll 4
                for (int c = 0; c < n_columns; ++c)
                    blocks[p].totals[c] = add_ints(blocks[p].totals[c], weighed(sums[p][c], weight));
            }
    }
};

/// Two panels one after the other, unsigned types in blocks of 256; y of the first, then of the second. With
/// one or two columns a tenth faster than one panel at a time; with four the registers do not suffice.
template <class Type, int n_columns>
inline void dot_two_panels_256(const std::byte* panels, const PanelLayout& layout, const Column* columns,
                               Floats* y) {
    constexpr int kGroupBytes = Type::kBodyVectors * 4 * kR;
    constexpr int kHeadBytes = (Type::kHeadBytes + 3) / 4 * 4 * kR;
    const std::byte* panel[2] = {panels, panels + layout.bytes};
    for (int i = 0; i < 2 * n_columns; ++i) y[i] = zero_floats();
    for (std::int64_t b = 0; b < layout.n_blocks; ++b) {
        BlockSum<Type, n_columns> blocks[2];
        for (int p = 0; p < 2; ++p) blocks[p].start(panel[p]);
        const std::byte* body[2] = {panel[0] + kHeadBytes, panel[1] + kHeadBytes};
#pragma GCC unroll 1
        for (int g = 0; g < 8; ++g) {
            Ints scale[2][2];
            for (int p = 0; p < 2; ++p) blocks[p].scales_of_group(g, scale[p]);
            TwoGroupSum<Type, n_columns> sum;
            for (int c = 0; c < n_columns; ++c) sum.a[c] = columns[c].q + 256 * b + 32 * g;
            const typename Type::Group groups[2] = {typename Type::Group(body[0]),
                                                    typename Type::Group(body[1])};
            sum.template add_pair<0>(groups, scale, blocks);
            sum.template add_pair<1>(groups, scale, blocks);
            sum.template add_pair<2>(groups, scale, blocks);
            sum.template add_pair<3>(groups, scale, blocks);
            for (int p = 0; p < 2; ++p) body[p] += kGroupBytes;
        }
        for (int p = 0; p < 2; ++p) {
            blocks[p].finish(panel[p], b, columns, y + p * n_columns);
            panel[p] = body[p];
        }
    }
}

#endif

/// Q8_0: blocks of 32 signed bytes.
template <int n_columns>
inline void dot_panel_q8_0(const std::byte* panel, const PanelLayout& layout, const Column* columns,
                           Floats* y) {
    for (int c = 0; c < n_columns; ++c) y[c] = zero_floats();
    for (std::int64_t b = 0; b < layout.n_blocks; ++b) {
        const std::byte* head = panel + b % 2 * 2 * kR;
        const std::byte* body = panel + 4 * kR + b % 2 * 32 * kR;
        if (b % 2 == 1) panel += 68 * kR;
        Ints totals[n_columns];
#if defined(PANTHEON_ISA_AVX512)
        // Unsigned bytes w + 128; the excess is the activations' sum.
        for (int c = 0; c < n_columns; ++c) totals[c] = all_ints(-128 * columns[c].sums[b]);
#else
        for (int c = 0; c < n_columns; ++c) totals[c] = zero_ints();
        const Ints ones = _mm256_set1_epi16(1);
#endif
#pragma GCC unroll 8
        for (int g = 0; g < 8; ++g) {
            const Bytes w = load_bytes(body + 4 * kR * g);
#if defined(PANTHEON_ISA_AVX512)
            const Bytes raised = flip_signs(w);
            for (int c = 0; c < n_columns; ++c)
                totals[c] = add_products(totals[c], raised, four_at(columns[c].q + 32 * b + 4 * g));
#else
            for (int c = 0; c < n_columns; ++c)
                totals[c] = add_ints(
                    totals[c], weighed(signed_products(w, four_at(columns[c].q + 32 * b + 4 * g)), ones));
#endif
        }
        const Floats d = load_halves(head);
        for (int c = 0; c < n_columns; ++c)
            y[c] = plus_product(times(d, all_floats(columns[c].d[b])), to_floats(totals[c]), y[c]);
    }
}

/// How one type's panels are multiplied: run<n_panels, n_columns>(panels, layout, columns, y), n_panels up to
/// kPanels and n_columns up to kPanelColumns; y has the columns of the first panel first.
template <class Type>
struct Dot256 {
#if defined(PANTHEON_ISA_AVX512)
    static constexpr int kPanels = 1;
#else
    static constexpr int kPanels =
        Type::kIsSigned ? 1 : 2;  // what the sign trick needs is made for each panel
#endif
    template <int n_panels, int n_columns>
    static void run(const std::byte* panels, const PanelLayout& layout, const Column* columns, Floats* y) {
#if !defined(PANTHEON_ISA_AVX512)
        if constexpr (n_panels == 2) return dot_two_panels_256<Type, n_columns>(panels, layout, columns, y);
#endif
        dot_panel_256<Type, n_columns>(panels, layout, columns, y);
    }
};
struct DotQ8 {
    static constexpr int kPanels = 1;
    template <int n_panels, int n_columns>
    static void run(const std::byte* panel, const PanelLayout& layout, const Column* columns, Floats* y) {
        dot_panel_q8_0<n_columns>(panel, layout, columns, y);
    }
};

/// n_columns ≥ 1 columns of some panels in one pass, results to y; n_rows: how many rows are wanted.
template <class Dot, int n_panels, int n_columns>
inline void dot_pass(const std::byte* panels, const PanelLayout& layout, std::int64_t n_rows,
                     const Column* columns, float* const* y, std::int64_t first) {
    Floats results[n_panels * n_columns];
    Dot::template run<n_panels, n_columns>(panels, layout, columns, results);
    for (int p = 0; p < n_panels; ++p) {
        const std::int64_t rows_left = n_rows - p * kR;
        const int n = rows_left < kR ? static_cast<int>(rows_left) : kR;
        for (int c = 0; c < n_columns; ++c)
            store_floats(y[c] + first + p * kR, results[p * n_columns + c], n);
    }
}

/// Panel after panel; each is in the first cache after the first pass of its columns.
template <class Dot>
inline void dot_panels_of(const std::byte* panels, const PanelLayout& layout, std::int64_t n_rows,
                          const Column* columns, int n_columns, float* const* y) {
    std::int64_t first = 0;
    if constexpr (Dot::kPanels == 2)
        if (n_columns <= 2)
            for (; n_rows - first > kR; first += 2 * kR, panels += 2 * layout.bytes) {
                if (n_columns == 1)
                    dot_pass<Dot, 2, 1>(panels, layout, n_rows - first, columns, y, first);
                else
                    dot_pass<Dot, 2, 2>(panels, layout, n_rows - first, columns, y, first);
            }
    for (; first < n_rows; first += kR, panels += layout.bytes)
        for (int done = 0; done < n_columns;) {
            const int left = n_columns - done;
            const Column* at = columns + done;
            float* const* out = y + done;
            if (left >= kPanelColumns)
                dot_pass<Dot, 1, kPanelColumns>(panels, layout, n_rows - first, at, out, first);
            else if (left >= 4)
                dot_pass<Dot, 1, 4>(panels, layout, n_rows - first, at, out, first);
            else if (left == 3)
                dot_pass<Dot, 1, 3>(panels, layout, n_rows - first, at, out, first);
            else if (left == 2)
                dot_pass<Dot, 1, 2>(panels, layout, n_rows - first, at, out, first);
            else
                dot_pass<Dot, 1, 1>(panels, layout, n_rows - first, at, out, first);
            done += left >= kPanelColumns ? kPanelColumns : left < 4 ? left : 4;
        }
}

inline DotPanels* panel_kernel(WeightType type) {
    switch (type) {
        case WeightType::q3_k:
            return dot_panels_of<Dot256<PanelQ3K>>;
        case WeightType::q4_k:
            return dot_panels_of<Dot256<PanelQ4K>>;
        case WeightType::q5_k:
            return dot_panels_of<Dot256<PanelQ5K>>;
        case WeightType::q6_k:
            return dot_panels_of<Dot256<PanelQ6K>>;
        case WeightType::iq4_xs:
            return dot_panels_of<Dot256<PanelIq4Xs>>;
        case WeightType::q8_0:
            return dot_panels_of<DotQ8>;
        default:
            return nullptr;
    }
}

}  // namespace pantheon::kernels::PANTHEON_ISA

#endif

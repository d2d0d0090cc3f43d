// Products of packed panels with a few columns, one panel and up to four columns a pass, eight with the
// registers of AVX-512: from the caches that is no faster, the multiplications of bytes being the bound
// already, but weights that come from memory then arrive while they are used. A panel's rows are the lanes,
// so there are no sums across lanes, and a group of weights is unpacked once for all columns. The results
// have the bits of the row kernels: integer sums are exact, and blocks are added by the same chain of fused
// multiply-adds.
#pragma once

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
    inline __attribute__((always_inline)) void add_group(const std::byte* body, int g, const Column* columns,
                                                         std::int64_t first) {
        const ScalePair scales_of_two = pair(Type::kScalesPerGroup == 2 ? g : g / 2);
        Ints scale[2];
        if constexpr (Type::kScalesPerGroup == 2) {
            scale[0] = even_scale(scales_of_two);
            scale[1] = odd_scale(scales_of_two);
        } else {
            scale[0] = g % 2 == 0 ? even_scale(scales_of_two) : odd_scale(scales_of_two);
        }
        GroupSum<Type, n_columns> sum;
        for (int c = 0; c < n_columns; ++c) sum.a[c] = columns[c].q + first + 32 * g;
        const typename Type::Group group(body);
        sum.template add_pair<0>(group, scale, totals);
        sum.template add_pair<1>(group, scale, totals);
        sum.template add_pair<2>(group, scale, totals);
        sum.template add_pair<3>(group, scale, totals);
    }
    /// Adds the block to y.
    inline __attribute__((always_inline)) void finish(const std::byte* head, std::int64_t b,
                                                      const Column* columns, Floats* y) {
        const Floats d = load_halves(head);
        for (int c = 0; c < n_columns; ++c) {
            const std::int16_t* sums = columns[c].sums + 16 * b;
            const Floats column_d = all_floats(columns[c].d[b]);
            std::int16_t of_32[8];
            if constexpr (Type::kScalesPerGroup == 1 && (Type::kHasMin || Type::kOffsetBits > 0)) {
                sums_of_32(sums, of_32);
                sums = of_32;
            }
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
#pragma GCC unroll 1
        for (int g = 0; g < 8; g += 2, body += 2 * kGroupBytes) {
            sum.add_group(body, g, columns, 256 * b);
            sum.add_group(body + kGroupBytes, g + 1, columns, 256 * b);
        }
        sum.finish(panel, b, columns, y);
        panel = body;
    }
}

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

/// Panel after panel with all columns, the panel in the first cache after the first pass. Dot::run<n>(panel,
/// layout, columns, results) does one panel and n columns.
template <class Dot>
inline void dot_panels_of(const std::byte* panels, const PanelLayout& layout, std::int64_t n_rows,
                          const Column* columns, int n_columns, float* const* y) {
    for (std::int64_t first = 0; first < n_rows; first += kR, panels += layout.bytes) {
        const int n = n_rows - first < kR ? static_cast<int>(n_rows - first) : kR;
        for (int done = 0; done < n_columns;) {
            Floats results[kPanelColumns];
            const Column* at = columns + done;
            const int left = n_columns - done;
            int taken = left < 4 ? left : 4;
            if (left >= kPanelColumns) {
                taken = kPanelColumns;
                Dot::template run<kPanelColumns>(panels, layout, at, results);
            } else if (left >= 4) {
                Dot::template run<4>(panels, layout, at, results);
            } else if (left == 3) {
                Dot::template run<3>(panels, layout, at, results);
            } else if (left == 2) {
                Dot::template run<2>(panels, layout, at, results);
            } else {
                Dot::template run<1>(panels, layout, at, results);
            }
            for (int c = 0; c < taken; ++c) store_floats(y[done + c] + first, results[c], n);
            done += taken;
        }
    }
}

template <class Type>
struct Dot256 {
    template <int n_columns>
    static void run(const std::byte* panel, const PanelLayout& layout, const Column* columns,
                    Floats* results) {
        dot_panel_256<Type, n_columns>(panel, layout, columns, results);
    }
};
struct DotQ8 {
    template <int n_columns>
    static void run(const std::byte* panel, const PanelLayout& layout, const Column* columns,
                    Floats* results) {
        dot_panel_q8_0<n_columns>(panel, layout, columns, results);
    }
};

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

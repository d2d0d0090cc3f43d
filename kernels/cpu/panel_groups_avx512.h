// Panels of types in blocks of 256 with the registers of AVX-512: products of bytes are added in 32 bits, and
// about sixteen sums grow side by side, since each product waits for the one before it in its sum. With many
// columns these are the columns of two panels, which also share the activations that are loaded; with few
// columns they are those of several groups of one panel.
#pragma once

#include "kernels/cpu/panel_block.h"

#if defined(PANTHEON_ISA_AVX512)

namespace pantheon::kernels::avx512 {

/// Sums as integers, times their integer scale: what fits every type.
template <class Type>
struct Weighing {
    using Scale = Ints;
    using Total = Ints;
    static constexpr int kTotals = 1;  // each for as many groups
    static Ints start() { return zero_ints(); }
    static Total zero() { return zero_ints(); }
    static Scale scale(Ints s) { return s; }
    static Total add(Total total, Ints sum, Scale s) { return add_ints(total, weighed(sum, s)); }
};
/// Q3_K: a sum of 16 products is below 2^15 (16 · 7 · 127), so that it can be the lower half of a lane of
/// 16-bit products.
template <>
struct Weighing<PanelQ3K> {
    using Scale = Ints;
    using Total = Ints;
    static constexpr int kTotals = 1;
    static Ints start() { return zero_ints(); }
    static Total zero() { return zero_ints(); }
    static Scale scale(Ints s) { return both(s, all_ints(0xFFFF)); }
    static Total add(Total total, Ints sum, Scale s) { return _mm512_dpwssd_epi32(total, sum, s); }
};
/// Q4_K: sums start at the bits of 1.5 · 2^23, so that they are the bits of that float plus the sum, and
/// multiply-adds of floats are cheaper than products of integers. Exact: four groups are below 2^24
/// (4 · 32 · 15 · 127 · 63), and what two such totals give is rounded once, as if an integer were converted.
template <>
struct Weighing<PanelQ4K> {
    using Scale = Floats;
    using Total = Floats;
    static constexpr int kTotals = 2;
    static Ints start() { return all_ints(0x4B400000); }
    static Total zero() { return zero_floats(); }
    static Scale scale(Ints s) { return to_floats(s); }
    static Total add(Total total, Ints sum, Scale s) {
        return plus_product(_mm512_sub_ps(_mm512_castsi512_ps(sum), all_floats(12582912.0f)), s, total);
    }
};

/// Sums of n_groups groups, of each part that has a scale, for all panels and columns.
template <class Type, int n_panels, int n_columns, int n_groups>
struct GroupSums {
    static constexpr int kParts = Type::kScalesPerGroup, kPairs = 4 / kParts;
    using Weigh = Weighing<Type>;

    const std::int8_t* a[n_columns];  // of the first group
    Ints sums[n_groups][n_panels][n_columns];

    /// Adds one part of the groups to the totals.
    template <int part>
    inline __attribute__((always_inline)) void add_part(const typename Type::Group (*groups)[n_panels],
                                                        const Ints (*scale)[n_panels][2],
                                                        typename Weigh::Total (*totals)[n_columns]) {
        for (int g = 0; g < n_groups; ++g)
            for (int p = 0; p < n_panels; ++p)
                for (int c = 0; c < n_columns; ++c) sums[g][p][c] = Weigh::start();
        for (int g = 0; g < n_groups; ++g) add_pair<kPairs * part>(groups[g], g);
        for (int g = 0; g < n_groups; ++g) add_pair<kPairs * part + 1>(groups[g], g);
        if constexpr (kParts == 1) {
            for (int g = 0; g < n_groups; ++g) add_pair<2>(groups[g], g);
            for (int g = 0; g < n_groups; ++g) add_pair<3>(groups[g], g);
        }
        for (int g = 0; g < n_groups; ++g)
            for (int p = 0; p < n_panels; ++p) {
                const typename Weigh::Scale s = Weigh::scale(scale[g][p][part]);
                for (int c = 0; c < n_columns; ++c) totals[p][c] = Weigh::add(totals[p][c], sums[g][p][c], s);
            }
    }

  private:
    template <int i>
    inline __attribute__((always_inline)) void add_pair(const typename Type::Group* groups, int g) {
        Bytes even[n_panels], odd[n_panels];
        for (int p = 0; p < n_panels; ++p) groups[p].template pair<i>(even[p], odd[p]);
        add_vector(even, 32 * g + 8 * i, sums[g]);
        add_vector(odd, 32 * g + 8 * i + 4, sums[g]);
    }
    inline __attribute__((always_inline)) void add_vector(const Bytes* w, int at, Ints (*sum)[n_columns]) {
        for (int c = 0; c < n_columns; ++c) {
            const Bytes four = broadcast_four(a[c] + at);
            for (int p = 0; p < n_panels; ++p) sum[p][c] = add_products(sum[p][c], w[p], four);
        }
    }
};

/// Consecutive panels; y has the columns of the first panel first.
template <class Type, int n_panels, int n_columns>
inline void dot_panels_256(const std::byte* panels, const PanelLayout& layout, const Column* columns,
                           Floats* y) {
    using Weigh = Weighing<Type>;
    constexpr int kSums = n_panels * n_columns;
    constexpr int kGroups = kSums > 8 ? 1 : kSums > 4 ? 2 : 4;
    for (int i = 0; i < kSums; ++i) y[i] = zero_floats();
    for (std::int64_t b = 0; b < layout.n_blocks; ++b) {
        const std::byte* block = panels + b * layout.unit_bytes;
        BlockHead<Type> heads[n_panels];
        for (int p = 0; p < n_panels; ++p) heads[p].read(block + p * layout.bytes);
        typename Weigh::Total totals[Weigh::kTotals][n_panels][n_columns];
        for (int t = 0; t < Weigh::kTotals; ++t)
            for (int p = 0; p < n_panels; ++p)
                for (int c = 0; c < n_columns; ++c) totals[t][p][c] = Weigh::zero();
        const std::byte* body = block + kPanelHeadBytes<Type>;
#pragma GCC unroll 1
        for (int t = 0; t < Weigh::kTotals; ++t)
#pragma GCC unroll 1
            for (int g = 8 / Weigh::kTotals * t; g < 8 / Weigh::kTotals * (t + 1); g += kGroups) {
                GroupSums<Type, n_panels, n_columns, kGroups> sums;
                typename Type::Group groups[kGroups][n_panels];
                Ints scale[kGroups][n_panels][2];
                for (int i = 0; i < kGroups; ++i, body += kPanelGroupBytes<Type>)
                    for (int p = 0; p < n_panels; ++p) {
                        prefetch_ahead<kPanelGroupBytes<Type>>(body + p * layout.bytes);
                        groups[i][p] = typename Type::Group(body + p * layout.bytes);
                        heads[p].scales_of_group(g + i, scale[i][p]);
                    }
                for (int c = 0; c < n_columns; ++c) sums.a[c] = columns[c].q + 256 * b + 32 * g;
                sums.template add_part<0>(groups, scale, totals[t]);
                if constexpr (Type::kScalesPerGroup == 2) sums.template add_part<1>(groups, scale, totals[t]);
            }
        for (int p = 0; p < n_panels; ++p) {
            Floats total[n_columns];
            if constexpr (Type::kOffsetBits > 0) {
                Ints offset[n_columns];
                heads[p].template offsets<n_columns>(columns, b, offset);
                for (int c = 0; c < n_columns; ++c) totals[0][p][c] = minus_ints(totals[0][p][c], offset[c]);
            }
            for (int c = 0; c < n_columns; ++c)
                if constexpr (Weigh::kTotals == 2)
                    total[c] = _mm512_add_ps(totals[0][p][c], totals[1][p][c]);
                else
                    total[c] = to_floats(totals[0][p][c]);
            heads[p].template finish<n_columns>(columns, b, total, y + p * n_columns);
        }
    }
}

}  // namespace pantheon::kernels::avx512

#endif

// Panels of types in blocks of 256 with the registers of AVX2: products of bytes are added in 16 bits, as
// many as cannot overflow. One panel and up to four columns a pass; with one or two columns two panels, which
// share the activations that are loaded (a tenth faster; with four columns the registers do not suffice).
#pragma once

#include "kernels/cpu/panel_block.h"

#if defined(PANTHEON_ISA_AVX2)

namespace pantheon::kernels::avx2 {

/// One group of 32 of one panel, for all columns.
template <class Type, int n_columns>
struct GroupSum {
    const std::int8_t* a[n_columns];  // the group's activations
    Ints sums[n_columns];

    template <int i>
    inline __attribute__((always_inline)) void add_pair(const typename Type::Group& group, const Ints* scale,
                                                        Ints* totals) {
        constexpr int kPairs = Type::kPairsPerSum;
        const Ints& weight = scale[Type::kScalesPerGroup == 2 ? i / 2 : 0];
        Bytes even, odd;
        group.template pair<i>(even, odd);
        if constexpr (Type::kIsSigned) {
            for (int c = 0; c < n_columns; ++c) {
                const std::int8_t* at = a[c] + 8 * i;
                totals[c] = add_ints(totals[c], weighed(signed_products(even, four_at(at)), weight));
                totals[c] = add_ints(totals[c], weighed(signed_products(odd, four_at(at + 4)), weight));
            }
            return;
        }
        for (int c = 0; c < n_columns; ++c) {
            const std::int8_t* at = a[c] + 8 * i;
            sums[c] = add_products(i % kPairs == 0 ? zero_ints() : sums[c], even, four_at(at));
            sums[c] = add_products(sums[c], odd, four_at(at + 4));
            keep_in_register(sums[c]);
            if constexpr ((i + 1) % kPairs == 0) totals[c] = add_ints(totals[c], weighed(sums[c], weight));
        }
    }
};

/// Ends a block: the totals of one panel to y.
template <class Type, int n_columns>
inline void finish_block(const BlockHead<Type>& head, const Column* columns, std::int64_t b, Ints* totals,
                         Floats* y) {
    if constexpr (Type::kOffsetBits > 0) {
        Ints offset[n_columns];
        head.template offsets<n_columns>(columns, b, offset);
        for (int c = 0; c < n_columns; ++c) totals[c] = minus_ints(totals[c], offset[c]);
    }
    Floats total[n_columns];
    for (int c = 0; c < n_columns; ++c) total[c] = to_floats(totals[c]);
    head.template finish<n_columns>(columns, b, total, y);
}

template <class Type, int n_columns>
inline void dot_panel_256(const std::byte* panel, const PanelLayout& layout, const Column* columns,
                          Floats* y) {
    for (int c = 0; c < n_columns; ++c) y[c] = zero_floats();
    for (std::int64_t b = 0; b < layout.n_blocks; ++b) {
        BlockHead<Type> head;
        head.read(panel);
        const std::byte* body = panel + kPanelHeadBytes<Type>;
        Ints totals[n_columns];
        for (int c = 0; c < n_columns; ++c) totals[c] = zero_ints();
#pragma GCC unroll 2
        for (int g = 0; g < 8; ++g, body += kPanelGroupBytes<Type>) {
            prefetch_ahead<kPanelGroupBytes<Type>>(body);
            Ints scale[2];
            head.scales_of_group(g, scale);
            GroupSum<Type, n_columns> sum;
            for (int c = 0; c < n_columns; ++c) sum.a[c] = columns[c].q + 256 * b + 32 * g;
            const typename Type::Group group(body);
            sum.template add_pair<0>(group, scale, totals);
            sum.template add_pair<1>(group, scale, totals);
            sum.template add_pair<2>(group, scale, totals);
            sum.template add_pair<3>(group, scale, totals);
        }
        finish_block<Type, n_columns>(head, columns, b, totals, y);
        panel = body;
    }
}

/// One group of 32 of two panels: a broadcast of activations serves both.
template <class Type, int n_columns>
struct TwoGroupSum {
    const std::int8_t* a[n_columns];
    Ints sums[2][n_columns];

    template <int i>
    inline __attribute__((always_inline)) void add_pair(const typename Type::Group* groups,
                                                        const Ints (*scale)[2], Ints (*totals)[n_columns]) {
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
                    totals[p][c] = add_ints(totals[p][c], weighed(sums[p][c], weight));
            }
    }
};

/// Two panels one after the other, unsigned types; y of the first, then of the second.
template <class Type, int n_columns>
inline void dot_two_panels_256(const std::byte* panels, const PanelLayout& layout, const Column* columns,
                               Floats* y) {
    const std::byte* panel[2] = {panels, panels + layout.bytes};
    for (int i = 0; i < 2 * n_columns; ++i) y[i] = zero_floats();
    for (std::int64_t b = 0; b < layout.n_blocks; ++b) {
        BlockHead<Type> heads[2];
        Ints totals[2][n_columns];
        for (int p = 0; p < 2; ++p) {
            heads[p].read(panel[p]);
            for (int c = 0; c < n_columns; ++c) totals[p][c] = zero_ints();
        }
        const std::byte* body[2] = {panel[0] + kPanelHeadBytes<Type>, panel[1] + kPanelHeadBytes<Type>};
#pragma GCC unroll 1
        for (int g = 0; g < 8; ++g) {
            for (int p = 0; p < 2; ++p) prefetch_ahead<kPanelGroupBytes<Type>>(body[p]);
            Ints scale[2][2];
            for (int p = 0; p < 2; ++p) heads[p].scales_of_group(g, scale[p]);
            TwoGroupSum<Type, n_columns> sum;
            for (int c = 0; c < n_columns; ++c) sum.a[c] = columns[c].q + 256 * b + 32 * g;
            const typename Type::Group groups[2] = {typename Type::Group(body[0]),
                                                    typename Type::Group(body[1])};
            sum.template add_pair<0>(groups, scale, totals);
            sum.template add_pair<1>(groups, scale, totals);
            sum.template add_pair<2>(groups, scale, totals);
            sum.template add_pair<3>(groups, scale, totals);
            for (int p = 0; p < 2; ++p) body[p] += kPanelGroupBytes<Type>;
        }
        for (int p = 0; p < 2; ++p) {
            finish_block<Type, n_columns>(heads[p], columns, b, totals[p], y + p * n_columns);
            panel[p] = body[p];
        }
    }
}

}  // namespace pantheon::kernels::avx2

#endif

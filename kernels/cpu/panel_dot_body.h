// Products of packed panels with a few columns: what the registers hold at once makes a pass, and passes
// follow one another while a panel is in the first cache. A panel's rows are the lanes, so there are no sums
// across lanes, and a group of weights is unpacked once for all columns of a pass. The results have the bits
// of the row kernels: integer sums are exact, and blocks are added by the same chain of fused multiply-adds.
#pragma once

#include "kernels/cpu/leaves.h"
#include "kernels/cpu/panel_groups_avx2.h"
#include "kernels/cpu/panel_groups_avx512.h"
#include "kernels/linear/weight_panels.h"

#if defined(PANTHEON_HAS_AVX2)

namespace pantheon::kernels::PANTHEON_ISA {

/// Q8_0: blocks of 32 signed bytes, two of them in a unit.
template <int n_panels, int n_columns>
inline void dot_panels_q8_0(const std::byte* panels, const PanelLayout& layout, const Column* columns,
                            Floats* y) {
    for (int i = 0; i < n_panels * n_columns; ++i) y[i] = zero_floats();
    for (std::int64_t b = 0; b < layout.n_blocks; ++b) {
        const std::byte* unit = panels + b / 2 * 68 * kR;
        const std::byte* head = unit + b % 2 * 2 * kR;
        const std::byte* body = unit + 4 * kR + b % 2 * 32 * kR;
        Ints totals[n_panels][n_columns];
        for (int c = 0; c < n_columns; ++c) {
#if defined(PANTHEON_ISA_AVX512)
            // Unsigned bytes w + 128; the excess is the activations' sum.
            const Ints start = all_ints(-128 * columns[c].sums[b]);
#else
            const Ints start = zero_ints();
#endif
            for (int p = 0; p < n_panels; ++p) totals[p][c] = start;
        }
        for (int p = 0; p < n_panels; ++p) {
            prefetch_ahead<2 * kR>(head + p * layout.bytes);
            prefetch_ahead<32 * kR>(body + p * layout.bytes);
        }
#pragma GCC unroll 8
        for (int g = 0; g < 8; ++g) {
            Bytes w[n_panels];
            for (int p = 0; p < n_panels; ++p) w[p] = load_bytes(body + p * layout.bytes + 4 * kR * g);
#if defined(PANTHEON_ISA_AVX512)
            for (int p = 0; p < n_panels; ++p) w[p] = flip_signs(w[p]);
#endif
            for (int c = 0; c < n_columns; ++c) {
                const std::int8_t* a = columns[c].q + 32 * b + 4 * g;
#if defined(PANTHEON_ISA_AVX512)
                const Bytes four = broadcast_four(a);
                for (int p = 0; p < n_panels; ++p) totals[p][c] = add_products(totals[p][c], w[p], four);
#else
                for (int p = 0; p < n_panels; ++p)
                    totals[p][c] = add_ints(totals[p][c],
                                            weighed(signed_products(w[p], four_at(a)), _mm256_set1_epi16(1)));
#endif
            }
        }
        for (int p = 0; p < n_panels; ++p) {
            const Floats d = load_halves(head + p * layout.bytes);
            for (int c = 0; c < n_columns; ++c) {
                Floats& sum = y[p * n_columns + c];
                sum = plus_product(times(d, all_floats(columns[c].d[b])), to_floats(totals[p][c]), sum);
            }
        }
    }
}

/// How one type's panels are multiplied: run<n_panels, n_columns>(panels, layout, columns, y); y has the
/// columns of the first panel first. kPanels(n): how many panels a pass with n columns takes.
template <class Type>
struct Dot256 {
#if defined(PANTHEON_ISA_AVX512)
    static constexpr int panels(int n_columns) {
        return n_columns > 4 ? 2 : 1;
    }
    template <int n_panels, int n_columns>
    static void run(const std::byte* panels, const PanelLayout& layout, const Column* columns, Floats* y) {
        dot_panels_256<Type, n_panels, n_columns>(panels, layout, columns, y);
    }
#else
    /// What the sign trick needs is made for each panel.
    static constexpr int panels(int n_columns) {
        return n_columns <= 2 && !Type::kIsSigned ? 2 : 1;
    }
    template <int n_panels, int n_columns>
    static void run(const std::byte* panels, const PanelLayout& layout, const Column* columns, Floats* y) {
        if constexpr (n_panels == 2)
            dot_two_panels_256<Type, n_columns>(panels, layout, columns, y);
        else
            dot_panel_256<Type, n_columns>(panels, layout, columns, y);
    }
#endif
};
struct DotQ8 {
    static constexpr int panels(int n_columns) { return kPanelColumns == 8 && n_columns > 4 ? 2 : 1; }
    template <int n_panels, int n_columns>
    static void run(const std::byte* panels, const PanelLayout& layout, const Column* columns, Floats* y) {
        dot_panels_q8_0<n_panels, n_columns>(panels, layout, columns, y);
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

/// Two panels after another, or the last one alone, for n_columns columns.
template <class Dot, int n_columns>
inline void dot_some(const std::byte* panels, const PanelLayout& layout, std::int64_t n_rows,
                     const Column* columns, float* const* y, std::int64_t first) {
    if constexpr (Dot::panels(n_columns) == 2)
        if (n_rows > kR) return dot_pass<Dot, 2, n_columns>(panels, layout, n_rows, columns, y, first);
    dot_pass<Dot, 1, n_columns>(panels, layout, n_rows, columns, y, first);
    if (Dot::panels(n_columns) == 1 && n_rows > kR)
        dot_pass<Dot, 1, n_columns>(panels + layout.bytes, layout, n_rows - kR, columns, y, first + kR);
}

/// n_columns ≤ kPanelColumns
template <class Dot>
inline void dot_columns(int n_columns, const std::byte* panels, const PanelLayout& layout,
                        std::int64_t n_rows, const Column* columns, float* const* y, std::int64_t first) {
    switch (n_columns) {
#if defined(PANTHEON_ISA_AVX512)
        case 8:
            return dot_some<Dot, 8>(panels, layout, n_rows, columns, y, first);
        case 7:
            return dot_some<Dot, 7>(panels, layout, n_rows, columns, y, first);
        case 6:
            return dot_some<Dot, 6>(panels, layout, n_rows, columns, y, first);
        case 5:
            return dot_some<Dot, 5>(panels, layout, n_rows, columns, y, first);
#endif
        case 4:
            return dot_some<Dot, 4>(panels, layout, n_rows, columns, y, first);
        case 3:
            return dot_some<Dot, 3>(panels, layout, n_rows, columns, y, first);
        case 2:
            return dot_some<Dot, 2>(panels, layout, n_rows, columns, y, first);
        default:
            return dot_some<Dot, 1>(panels, layout, n_rows, columns, y, first);
    }
}

/// Two panels at a time; they are in the first cache after the first pass of their columns.
template <class Dot>
inline void dot_panels_of(const std::byte* panels, const PanelLayout& layout, std::int64_t n_rows,
                          const Column* columns, int n_columns, float* const* y) {
    for (std::int64_t first = 0; first < n_rows; first += 2 * kR, panels += 2 * layout.bytes)
        for (int done = 0; done < n_columns; done += kPanelColumns)
            dot_columns<Dot>(n_columns - done < kPanelColumns ? n_columns - done : kPanelColumns, panels,
                             layout, n_rows - first, columns + done, y + done, first);
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

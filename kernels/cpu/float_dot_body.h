// Products with float weights: eight f32 sums, element i in sum i mod 8; contract in leaves.h.
#pragma once

#include "kernels/cpu/dot_tiles.h"
#include "kernels/cpu/float_dot_avx512.h"

namespace pantheon::kernels::PANTHEON_ISA {

struct WeightF32 {
    static constexpr int kBytes = 4;
    static F8 load(const std::byte* p) { return load_f32(p); }
};
struct WeightF16 {
    static constexpr int kBytes = 2;
    static F8 load(const std::byte* p) { return load_f16(p); }
};
struct WeightBf16 {
    static constexpr int kBytes = 2;
    static F8 load(const std::byte* p) { return load_bf16(p); }
};

template <class Weight>
struct FloatTile {
    template <int Rows, int Columns>
    static F8 dot(const std::byte* const* rows, std::int64_t n_in, const Column* columns) {
        F8 sums[8];
        for (F8& s : sums) s = zero8();
        const std::int64_t n_whole = n_in / 8 * 8;
        for (std::int64_t i = 0; i < n_whole; i += 8)
            for (int r = 0; r < Rows; ++r) {
                const F8 w = Weight::load(rows[r] + i * Weight::kBytes);
                for (int c = 0; c < Columns; ++c)
                    sums[r * Columns + c] = fma(w, load(columns[c].x + i), sums[r * Columns + c]);
            }
        if (n_whole < n_in) {
            const std::int64_t n = n_in - n_whole;
            for (int r = 0; r < Rows; ++r) {
                std::byte padded[8 * Weight::kBytes] = {};
                std::memcpy(padded, rows[r] + n_whole * Weight::kBytes,
                            static_cast<std::size_t>(n * Weight::kBytes));
                const F8 w = Weight::load(padded);
                for (int c = 0; c < Columns; ++c)
                    sums[r * Columns + c] =
                        fma(w, load_first(columns[c].x + n_whole, n), sums[r * Columns + c]);
            }
        }
        return sum_each(sums);
    }
};

template <class Weight>
inline void float_dot_rows(const std::byte* w, std::int64_t row_bytes, int n_rows, std::int64_t n_in,
                           const Column* columns, int n_columns, float* const* y) {
#if defined(PANTHEON_ISA_AVX512)
    if (n_columns > 4) return dot_many_columns<Weight>(w, row_bytes, n_rows, n_in, columns, n_columns, y);
#endif
    dot_rows_of<FloatTile<Weight>>(w, row_bytes, n_rows, n_in, columns, n_columns, y);
}

inline DotRows* dot_rows(WeightType type) {
    switch (type) {
        case WeightType::f32:
            return float_dot_rows<WeightF32>;
        case WeightType::f16:
            return float_dot_rows<WeightF16>;
        case WeightType::bf16:
            return float_dot_rows<WeightBf16>;
        default:
            return int_dot_rows(type);
    }
}

}  // namespace pantheon::kernels::PANTHEON_ISA

// Integer products in plain C++: what every other instruction set must reproduce bit for bit.
#include "kernels/cpu/block_ints_iq.h"
#include "kernels/cpu/block_ints_k.h"
#include "kernels/cpu/dot_tiles.h"

namespace pantheon::kernels::scalar {
namespace {

int dot_ints(const std::int8_t* a, const std::int8_t* b, int n) {
    int total = 0;
    for (int i = 0; i < n; ++i) total += a[i] * b[i];
    return total;
}

template <class Type>
void unpack(const std::byte* block, Ints256& out) {
    if constexpr (requires { Type::unpack(block, iq_grids(), out); })
        Type::unpack(block, iq_grids(), out);
    else
        Type::unpack(block, out);
}

template <class Type>
struct Tile256 {
    template <int Rows, int Columns>
    static F8 dot(const std::byte* const* rows, std::int64_t n_in, const Column* columns) {
        F8 y = zero8();
        for (std::int64_t b = 0; b < n_in / 256; ++b)
            for (int r = 0; r < Rows; ++r) {
                Ints256 w;
                unpack<Type>(rows[r] + b * Type::kBytes, w);
                for (int c = 0; c < Columns; ++c) {
                    const Column& column = columns[c];
                    float& total = y.v[r * Columns + c];
                    int product = 0, min = 0;
                    for (int s = 0; s < 16; ++s) {
                        product += w.scale[s] * dot_ints(w.w + 16 * s, column.q + 256 * b + 16 * s, 16);
                        if constexpr (Type::kHasMin) min += w.min[s] * column.sums[kSumsPer256 * b + s];
                    }
                    total = __builtin_fmaf(w.d * column.d[b], static_cast<float>(product), total);
                    if constexpr (Type::kHasMin)
                        total = __builtin_fmaf(-(w.dmin * column.d[b]), static_cast<float>(min), total);
                }
            }
        return y;
    }
};

template <class Type>
struct Tile32 {
    template <int Rows, int Columns>
    static F8 dot(const std::byte* const* rows, std::int64_t n_in, const Column* columns) {
        F8 y = zero8();
        for (std::int64_t b = 0; b < n_in / 32; ++b)
            for (int r = 0; r < Rows; ++r) {
                Ints32 w;
                Type::unpack(rows[r] + b * Type::kBytes, w);
                for (int c = 0; c < Columns; ++c) {
                    const Column& column = columns[c];
                    float& total = y.v[r * Columns + c];
                    const int product = dot_ints(w.w, column.q + 32 * b, 32);
                    total = __builtin_fmaf(w.d * column.d[b], static_cast<float>(product), total);
                    if constexpr (Type::kHasMin)
                        total = __builtin_fmaf(w.m * column.d[b], static_cast<float>(column.sums[b]), total);
                }
            }
        return y;
    }
};

}  // namespace

DotRows* int_dot_rows(WeightType type) {
    switch (type) {
        case WeightType::q4_0:
            return dot_rows_of<Tile32<Q4_0>>;
        case WeightType::q4_1:
            return dot_rows_of<Tile32<Q4_1>>;
        case WeightType::q5_0:
            return dot_rows_of<Tile32<Q5_0>>;
        case WeightType::q5_1:
            return dot_rows_of<Tile32<Q5_1>>;
        case WeightType::q8_0:
            return dot_rows_of<Tile32<Q8_0>>;
        case WeightType::iq4_nl:
            return dot_rows_of<Tile32<Iq4Nl>>;
        case WeightType::mxfp4:
            return dot_rows_of<Tile32<Mxfp4>>;
        case WeightType::q2_k:
            return dot_rows_of<Tile256<Q2K>>;
        case WeightType::q3_k:
            return dot_rows_of<Tile256<Q3K>>;
        case WeightType::q4_k:
            return dot_rows_of<Tile256<Q4K>>;
        case WeightType::q5_k:
            return dot_rows_of<Tile256<Q5K>>;
        case WeightType::q6_k:
            return dot_rows_of<Tile256<Q6K>>;
        case WeightType::iq2_xxs:
            return dot_rows_of<Tile256<Iq2Xxs>>;
        case WeightType::iq2_xs:
            return dot_rows_of<Tile256<Iq2Xs>>;
        case WeightType::iq2_s:
            return dot_rows_of<Tile256<Iq2S>>;
        case WeightType::iq3_xxs:
            return dot_rows_of<Tile256<Iq3Xxs>>;
        case WeightType::iq3_s:
            return dot_rows_of<Tile256<Iq3S>>;
        case WeightType::iq1_s:
            return dot_rows_of<Tile256<Iq1S>>;
        case WeightType::iq1_m:
            return dot_rows_of<Tile256<Iq1M>>;
        case WeightType::iq4_xs:
            return dot_rows_of<Tile256<Iq4Xs>>;
        case WeightType::f32:
        case WeightType::f16:
        case WeightType::bf16:
            break;
    }
    return nullptr;
}

}  // namespace pantheon::kernels::scalar

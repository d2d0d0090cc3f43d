#include "kernels/quant/dequantize.h"

#include <cassert>

#include "kernels/quant/block_rows.h"

namespace pantheon::kernels {
namespace {

rows::RowFunction* row_function(WeightType type) {
    switch (type) {
        case WeightType::f32:
            return rows::f32;
        case WeightType::f16:
            return rows::f16;
        case WeightType::bf16:
            return rows::bf16;
        case WeightType::q4_0:
            return rows::q4_0;
        case WeightType::q4_1:
            return rows::q4_1;
        case WeightType::q5_0:
            return rows::q5_0;
        case WeightType::q5_1:
            return rows::q5_1;
        case WeightType::q8_0:
            return rows::q8_0;
        case WeightType::q2_k:
            return rows::q2_k;
        case WeightType::q3_k:
            return rows::q3_k;
        case WeightType::q4_k:
            return rows::q4_k;
        case WeightType::q5_k:
            return rows::q5_k;
        case WeightType::q6_k:
            return rows::q6_k;
        case WeightType::iq2_xxs:
            return rows::iq2_xxs;
        case WeightType::iq2_xs:
            return rows::iq2_xs;
        case WeightType::iq2_s:
            return rows::iq2_s;
        case WeightType::iq3_xxs:
            return rows::iq3_xxs;
        case WeightType::iq3_s:
            return rows::iq3_s;
        case WeightType::iq1_s:
            return rows::iq1_s;
        case WeightType::iq1_m:
            return rows::iq1_m;
        case WeightType::iq4_nl:
            return rows::iq4_nl;
        case WeightType::iq4_xs:
            return rows::iq4_xs;
        case WeightType::mxfp4:
            return rows::mxfp4;
    }
    return nullptr;
}

}  // namespace

void dequantize_row(WeightType type, const std::byte* src, float* y, std::int64_t n) {
    assert(n % weight_type_info(type)->block_elems == 0);
    rows::RowFunction* row = row_function(type);
    assert(row != nullptr && "not a supported type");
    row(src, y, n);
}

}  // namespace pantheon::kernels

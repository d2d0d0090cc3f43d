// Needs AVX-512 F, BW, DQ, VL and VNNI; no alignment, any length. The short loops stay on eight lanes.
#define PANTHEON_ISA_AVX512
#include "kernels/cpu/leaves_body.h"

namespace pantheon::kernels {

namespace avx2 {
DotRows* int_dot_rows(WeightType type);
}

namespace avx512 {

// Rows as the file has them are multiplied as with AVX2.
DotRows* int_dot_rows(WeightType type) {
    return avx2::int_dot_rows(type);
}

extern const Leaves kLeaves;
const Leaves kLeaves = kTable;

}  // namespace avx512

}  // namespace pantheon::kernels

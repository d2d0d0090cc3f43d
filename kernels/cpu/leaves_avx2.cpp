// Needs AVX2, FMA and F16C; no alignment, any length.
#define PANTHEON_ISA_AVX2
#include "kernels/cpu/leaves_body.h"

namespace pantheon::kernels::avx2 {

extern const Leaves kLeaves;
const Leaves kLeaves = kTable;

}  // namespace pantheon::kernels::avx2

// Needs AVX-512 F, BW, DQ, VL and VNNI; panels on cache lines.
#define PANTHEON_ISA_AVX512
#include "kernels/cpu/panel_dot.h"
#include "kernels/cpu/panel_dot_body.h"

namespace pantheon::kernels::avx512 {

DotPanels* dot_panels(WeightType type) {
    return panel_kernel(type);
}

}  // namespace pantheon::kernels::avx512

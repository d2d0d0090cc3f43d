// Needs AVX2, FMA and F16C; panels on cache lines.
#define PANTHEON_ISA_AVX2
#include "kernels/cpu/panel_dot.h"
#include "kernels/cpu/panel_dot_body.h"

namespace pantheon::kernels::avx2 {

DotPanels* dot_panels(WeightType type) {
    return panel_kernel(type);
}

}  // namespace pantheon::kernels::avx2

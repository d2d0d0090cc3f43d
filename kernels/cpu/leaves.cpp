#include "kernels/cpu/leaves.h"

namespace pantheon::kernels {

namespace scalar {
extern const Leaves kLeaves;
}
#if defined(__x86_64__)
namespace avx2 {
extern const Leaves kLeaves;
}
namespace avx512 {
extern const Leaves kLeaves;
}
#endif

const Leaves& cpu_leaves(CpuIsa isa) {
#if defined(__x86_64__)
    if (isa == CpuIsa::avx512) return avx512::kLeaves;
    if (isa == CpuIsa::avx2) return avx2::kLeaves;
#endif
    (void)isa;
    return scalar::kLeaves;
}

int quant_width(WeightType type) {
    const int elems = weight_type_info(type)->block_elems;
    return elems == 1 ? 0 : elems;
}

}  // namespace pantheon::kernels

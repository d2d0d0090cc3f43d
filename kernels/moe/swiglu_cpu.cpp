#include "kernels/cpu/leaves.h"
#include "kernels/moe/swiglu.h"

namespace pantheon::kernels {

void swiglu_cpu(Exec& exec, const float* gate, const float* up, float* y, std::int64_t n) {
    const Leaves& leaves = cpu_leaves(exec.isa());
    exec.team().parallel_for(n, 4096, [&](std::int64_t begin, std::int64_t end) {
        leaves.swiglu(gate + begin, up + begin, y + begin, end - begin);
    });
}

}  // namespace pantheon::kernels

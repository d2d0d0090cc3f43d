#include <cstdint>

#include "kernels/cpu/leaves.h"
#include "kernels/moe/moe_combine.h"

namespace pantheon::kernels {

void moe_combine_cpu(Exec& exec, const float* routed, const float* weights, const float* shared,
                     const float* shared_gate, float* y, int n_rows, int n_used, int n) {
    const Leaves& leaves = cpu_leaves(exec.isa());
    exec.team().parallel_for(n_rows, 4, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r)
            leaves.moe_combine(routed + r * n_used * n, n, weights + r * n_used, n_used, shared + r * n,
                               shared_gate[r], nullptr, y + r * n, n);
    });
}

}  // namespace pantheon::kernels

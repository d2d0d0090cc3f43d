#include "kernels/attention/output_gate.h"
#include "kernels/cpu/leaves.h"

namespace pantheon::kernels {

void output_gate_cpu(Exec& exec, float* y, const float* gate, std::int64_t gate_stride, int n_rows,
                     int head_dim) {
    const Leaves& leaves = cpu_leaves(exec.isa());
    exec.team().parallel_for(n_rows, 32, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r)
            leaves.output_gate(y + r * head_dim, gate + r * gate_stride, head_dim);
    });
}

}  // namespace pantheon::kernels

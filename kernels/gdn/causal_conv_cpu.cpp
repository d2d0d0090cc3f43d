#include "kernels/cpu/leaves.h"
#include "kernels/gdn/causal_conv.h"

namespace pantheon::kernels {

void causal_conv_cpu(Exec& exec, const ConvRun* runs, int n_runs, const float* u, const float* w, float* y,
                     int n_channels, int d_conv) {
    const Leaves& leaves = cpu_leaves(exec.isa());
    for (int s = 0; s < n_runs; ++s) {
        const ConvRun& run = runs[s];
        const std::int64_t first = static_cast<std::int64_t>(run.first_row) * n_channels;
        exec.team().parallel_for(n_channels, 512, [&](std::int64_t begin, std::int64_t end) {
            leaves.causal_conv({end - begin, u + first + begin, w + begin * d_conv,
                                run.state + begin * (d_conv - 1), y + first + begin, n_channels, n_channels,
                                run.n_rows, d_conv});
        });
    }
}

}  // namespace pantheon::kernels

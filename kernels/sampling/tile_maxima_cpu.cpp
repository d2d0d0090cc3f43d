#include <algorithm>

#include "kernels/cpu/leaves.h"
#include "kernels/sampling/tile_maxima.h"

namespace pantheon::kernels {

void tile_maxima_cpu(Exec& exec, const float* logits, int n_rows, std::int64_t n, float* maxima) {
    constexpr std::int64_t kTilesAtOnce = 16;
    const Leaves& leaves = cpu_leaves(exec.isa());
    const std::int64_t n_tiles = n_logit_tiles(n);
    exec.team().parallel_for(n_rows * n_tiles, kTilesAtOnce, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
            const std::int64_t row = i / n_tiles, first = i % n_tiles * kLogitTile;
            maxima[i] =
                leaves.finite_max(logits + row * n + first, std::min<std::int64_t>(kLogitTile, n - first));
        }
    });
}

}  // namespace pantheon::kernels

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/sampling/tile_maxima.h"

namespace pantheon::kernels {

void tile_maxima_ref(Exec&, const float* logits, int n_rows, std::int64_t n, float* maxima) {
    for (int r = 0; r < n_rows; ++r, logits += n)
        for (std::int64_t first = 0; first < n; first += kLogitTile) {
            const float* tile = logits + first;
            const float* end = logits + std::min(n, first + kLogitTile);
            *maxima++ = std::all_of(tile, end, [](float l) { return std::isfinite(l); })
                            ? *std::max_element(tile, end)
                            : std::numeric_limits<float>::quiet_NaN();
        }
}

}  // namespace pantheon::kernels

#include "kernels/gdn/causal_conv.h"

#include <cstdint>

#include "kernels/exec/ref_math.h"

namespace pantheon::kernels {

void causal_conv_ref(Exec& exec, const ConvRun* runs, int n_runs, const float* u, const float* w, float* y,
                     int n_channels, int d_conv) {
    const int n_state = d_conv - 1;
    for (int s = 0; s < n_runs; ++s) {
        const ConvRun& run = runs[s];
        const float* rows_in = u + static_cast<std::int64_t>(run.first_row) * n_channels;
        float* rows_out = y + static_cast<std::int64_t>(run.first_row) * n_channels;
        exec.team().parallel_for(n_channels, 64, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t c = begin; c < end; ++c) {
                float* state = run.state + c * n_state;
                // Input i of the channel's history: the stored ones first, then those of this run.
                const auto input = [&](std::int64_t i) {
                    return i < n_state ? state[i] : rows_in[(i - n_state) * n_channels + c];
                };
                for (std::int64_t t = 0; t < run.n_rows; ++t) {
                    double sum = 0;
                    for (int j = 0; j < d_conv; ++j)
                        sum += static_cast<double>(w[c * d_conv + j]) * input(t + j);
                    rows_out[t * n_channels + c] = static_cast<float>(ref::silu(sum));
                }
                // Ascending: entry j is replaced by a later one, so none is read after it was overwritten.
                for (int j = 0; j < n_state; ++j) state[j] = input(run.n_rows + j);
            }
        });
    }
}

}  // namespace pantheon::kernels

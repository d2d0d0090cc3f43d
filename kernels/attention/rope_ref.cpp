#include "kernels/attention/rope.h"

#include <cmath>

namespace pantheon::kernels {

void rope_ref(Exec& exec, const RopeParams& params, float* x, const std::int32_t* pos, int n_tokens,
              int n_heads, int head_dim) {
    const int n_pairs = params.rope_dim / 2;
    exec.team().parallel_for(n_tokens, 1, [&](int thread, std::int64_t begin, std::int64_t end) {
        double* cosine = exec.scratch<double>(thread, static_cast<std::size_t>(2 * n_pairs));
        double* sine = cosine + n_pairs;
        for (std::int64_t t = begin; t < end; ++t) {
            for (int i = 0; i < n_pairs; ++i) {
                const double frequency = std::pow(params.freq_base, -2.0 * i / params.rope_dim);
                const double theta = params.pair_turns(i) ? pos[t] * params.freq_scale * frequency : 0.0;
                cosine[i] = std::cos(theta);
                sine[i] = std::sin(theta);
            }
            for (int h = 0; h < n_heads; ++h) {
                float* head = x + (t * n_heads + h) * head_dim;
                for (int i = 0; i < n_pairs; ++i) {
                    const double a = head[i];
                    const double b = head[i + n_pairs];
                    head[i] = static_cast<float>(a * cosine[i] - b * sine[i]);
                    head[i + n_pairs] = static_cast<float>(a * sine[i] + b * cosine[i]);
                }
            }
        }
    });
}

}  // namespace pantheon::kernels

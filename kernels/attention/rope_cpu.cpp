#include "kernels/attention/rope.h"
#include "kernels/cpu/f64_math.h"
#include "kernels/cpu/leaves.h"

namespace pantheon::kernels {

void rope_cpu(Exec& exec, const RopeParams& params, float* x, const std::int32_t* pos, int n_tokens,
              int n_heads, int head_dim) {
    const Leaves& leaves = cpu_leaves(exec.isa());
    const int n_pairs = params.rope_dim / 2;
    const double log_base = f64::log(params.freq_base);
    exec.team().parallel_for(n_tokens, 4, [&](int thread, std::int64_t begin, std::int64_t end) {
        float* cosine = exec.scratch<float>(thread, static_cast<std::size_t>(2 * n_pairs));
        float* sine = cosine + n_pairs;
        for (std::int64_t t = begin; t < end; ++t) {
            for (int i = 0; i < n_pairs; ++i) {
                const double frequency = f64::exp(-2.0 * i / params.rope_dim * log_base);
                const double theta = params.pair_turns(i) ? pos[t] * params.freq_scale * frequency : 0.0;
                const f64::SinCos turn = f64::sin_cos(theta);
                cosine[i] = static_cast<float>(turn.cos);
                sine[i] = static_cast<float>(turn.sin);
            }
            for (int h = 0; h < n_heads; ++h)
                leaves.rotate(x + (t * n_heads + h) * head_dim, cosine, sine, n_pairs);
        }
    });
}

}  // namespace pantheon::kernels

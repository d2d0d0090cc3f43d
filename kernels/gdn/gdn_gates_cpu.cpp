#include <cstdint>

#include "kernels/cpu/f64_math.h"
#include "kernels/gdn/gdn_gates.h"

namespace pantheon::kernels {
namespace {

double softplus(double x) {
    return x > 20.0 ? x : f64::log1p(f64::exp(x));
}

}  // namespace

// A few values per token: f64 costs nothing here, and a small decay keeps its digits.
void gdn_gates_of_head_cpu(float b, float alpha, float a, float dt, float& beta, float& g) {
    beta = static_cast<float>(1.0 / (1.0 + f64::exp(-static_cast<double>(b))));
    g = static_cast<float>(a * softplus(static_cast<double>(alpha) + dt));
}

void gdn_gates_cpu(Exec& exec, const float* b, const float* alpha, const float* a, const float* dt,
                   float* beta, float* g, int n_tokens, int n_head_v) {
    exec.team().parallel_for(n_tokens, 16, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t t = begin; t < end; ++t)
            for (int h = 0; h < n_head_v; ++h) {
                const std::int64_t i = t * n_head_v + h;
                gdn_gates_of_head_cpu(b[i], alpha[i], a[h], dt[h], beta[i], g[i]);
            }
    });
}

}  // namespace pantheon::kernels

#include "kernels/moe/expert_linear.h"

#include "kernels/exec/ref_math.h"
#include "kernels/quant/dequantize.h"

namespace pantheon::kernels {

void expert_linear_ref(Exec& exec, const ExpertMatrices& w, const ExpertGroups& groups, ActivationRows& x,
                       int pairs_per_row, float* y) {
    const std::int64_t n_in = w.first.n_in;
    const std::int64_t n_out = w.first.n_out;
    exec.team().parallel_for(groups.n_active * n_out, 16,
                             [&](int thread, std::int64_t first, std::int64_t last) {
                                 float* row = exec.scratch<float>(thread, static_cast<std::size_t>(n_in));
                                 for (std::int64_t item = first; item < last; ++item) {
                                     const std::int64_t a = item / n_out;
                                     const std::int64_t o = item % n_out;
                                     dequantize_row(w.first.type, w.row(groups.active[a], o), row, n_in);
                                     for (std::int32_t i = groups.begin[a]; i < groups.begin[a + 1]; ++i) {
                                         const std::int64_t pair = groups.pairs[i];
                                         const float* in = x.row(pair / pairs_per_row);
                                         y[pair * n_out + o] = static_cast<float>(ref::dot(row, in, n_in));
                                     }
                                 }
                             });
}

}  // namespace pantheon::kernels

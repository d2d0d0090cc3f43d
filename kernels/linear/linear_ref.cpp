#include "kernels/linear/linear.h"

#include "kernels/exec/ref_math.h"
#include "kernels/quant/dequantize.h"

namespace pantheon::kernels {

void linear_ref(Exec& exec, const WeightMatrix& w, ActivationRows& x, float* y) {
    if (x.n_rows() == 0) return;
    exec.team().parallel_for(w.n_out, 16, [&](int thread, std::int64_t begin, std::int64_t end) {
        float* row = exec.scratch<float>(thread, static_cast<std::size_t>(w.n_in));
        for (std::int64_t o = begin; o < end; ++o) {
            dequantize_row(w.type, w.row(o), row, w.n_in);
            // A weight row is expanded once for all rows of x.
            for (std::int64_t r = 0; r < x.n_rows(); ++r)
                y[r * w.n_out + o] = static_cast<float>(ref::dot(row, x.row(r), w.n_in));
        }
    });
}

}  // namespace pantheon::kernels

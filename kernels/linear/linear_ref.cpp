#include "kernels/linear/linear.h"

#include "kernels/exec/ref_math.h"
#include "kernels/linear/add_rows.h"
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

void linear_all_ref(Exec& exec, const Product* products, int n_products, ActivationRows& x) {
    for (int i = 0; i < n_products; ++i) linear_ref(exec, *products[i].w, x, products[i].y);
}

void linear_add_ref(Exec& exec, const WeightMatrix& w, ActivationRows& x, float* y, float* sum) {
    linear_ref(exec, w, x, y);
    add_rows_ref(exec, sum, y, x.n_rows() * w.n_out);
}

}  // namespace pantheon::kernels

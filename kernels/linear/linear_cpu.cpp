#include "kernels/linear/linear.h"

#include <algorithm>

#include "kernels/cpu/columns.h"
#include "kernels/cpu/row_product.h"

namespace pantheon::kernels {
namespace {

// A thread that was held up by another process must not keep the others waiting for long.
constexpr int kItemsPerThread = 8;

}  // namespace

void linear_cpu(Exec& exec, const WeightMatrix& w, ActivationRows& x, float* y) {
    if (x.n_rows() == 0) return;
    const Columns columns(exec, x, w.type);
    const RowProduct product(exec, w);
    const std::int64_t rows_per_item =
        product.rows_per_item(w, x.n_rows(), kItemsPerThread * exec.team().n_threads());
    exec.team().parallel_for(w.n_out, rows_per_item, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t first = begin; first < end; first += rows_per_item) {
            const std::int64_t n_out = std::min(rows_per_item, end - first);
            for (int r = 0; r < x.n_rows(); r += product.max_columns()) {
                const int n = std::min(product.max_columns(), x.n_rows() - r);
                Column group[kMaxColumns];
                float* out[kMaxColumns];
                for (int c = 0; c < n; ++c) {
                    group[c] = columns.column(r + c);
                    out[c] = y + static_cast<std::int64_t>(r + c) * w.n_out + first;
                }
                product.run(w, first, n_out, group, n, out);
            }
        }
    });
}

}  // namespace pantheon::kernels

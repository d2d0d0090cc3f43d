#include "kernels/linear/linear.h"

#include <algorithm>

#include "kernels/cpu/columns.h"
#include "kernels/cpu/row_product.h"

namespace pantheon::kernels {
namespace {

// Weight rows that one thread takes at once: they stay in its cache for all groups of columns.
constexpr std::int64_t kRowsPerItem = 32;

}  // namespace

void linear_cpu(Exec& exec, const WeightMatrix& w, ActivationRows& x, float* y) {
    if (x.n_rows() == 0) return;
    const Columns columns(exec, x, w.type);
    const RowProduct product(exec, w);
    exec.team().parallel_for(w.n_out, kRowsPerItem, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t first = begin; first < end; first += kRowsPerItem) {
            const std::int64_t n_out = std::min(kRowsPerItem, end - first);
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

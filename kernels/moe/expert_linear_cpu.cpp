#include "kernels/moe/expert_linear.h"

#include <algorithm>

#include "kernels/cpu/columns.h"
#include "kernels/cpu/row_product.h"

namespace pantheon::kernels {
namespace {

constexpr int kItemsPerThread = 8;

}  // namespace

void expert_linear_cpu(Exec& exec, const ExpertMatrices& w, const ExpertGroups& groups, ActivationRows& x,
                       int pairs_per_row, float* y) {
    if (groups.n_active == 0) return;
    const std::int64_t n_out = w.first.n_out;
    const Columns columns(exec, x, w.first.type);
    const RowProduct product(exec, w.first);
    const std::int64_t n_pairs = groups.begin[groups.n_active];
    const std::int64_t items_wanted =
        std::max<std::int64_t>(1, kItemsPerThread * exec.team().n_threads() / groups.n_active);
    const std::int64_t rows_per_item =
        product.rows_per_item(w.first, n_pairs / groups.n_active, items_wanted);
    const std::int64_t n_parts = (n_out + rows_per_item - 1) / rows_per_item;
    exec.team().parallel_for(groups.n_active * n_parts, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t item = begin; item < end; ++item) {
            const std::int64_t a = item / n_parts;
            const std::int64_t first = item % n_parts * rows_per_item;
            const std::int64_t n_rows = std::min(rows_per_item, n_out - first);
            const WeightMatrix expert = w.at(groups.active[a]);
            for (std::int32_t i = groups.begin[a]; i < groups.begin[a + 1]; i += product.max_columns()) {
                const int n = std::min(product.max_columns(), groups.begin[a + 1] - i);
                Column group[kMaxColumns];
                float* out[kMaxColumns];
                for (int c = 0; c < n; ++c) {
                    const std::int64_t pair = groups.pairs[i + c];
                    group[c] = columns.column(pair / pairs_per_row);
                    out[c] = y + pair * n_out + first;
                }
                product.run(expert, first, n_rows, group, n, out);
            }
        }
    });
}

}  // namespace pantheon::kernels

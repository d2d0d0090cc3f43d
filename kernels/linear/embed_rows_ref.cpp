#include "kernels/linear/embed_rows.h"

#include "kernels/quant/dequantize.h"

namespace pantheon::kernels {

void embed_rows_ref(Exec& exec, const WeightMatrix& table, const std::int32_t* ids, float* y, int n_rows) {
    exec.team().parallel_for(n_rows, 4, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r)
            dequantize_row(table.type, table.row(ids[r]), y + r * table.n_in, table.n_in);
    });
}

}  // namespace pantheon::kernels

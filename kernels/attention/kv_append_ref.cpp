#include "kernels/attention/kv_append.h"

#include <cstring>

#include "kernels/quant/dequantize.h"

namespace pantheon::kernels {
namespace {

void store_row(KvRowType type, const float* x, int n, std::byte* row) {
    if (type == KvRowType::f32) {
        std::memcpy(row, x, static_cast<std::size_t>(n) * sizeof(float));
        return;
    }
    for (int i = 0; i < n; ++i) {
        const std::uint16_t half = float_to_half(x[i]);
        std::memcpy(row + static_cast<std::size_t>(i) * sizeof(half), &half, sizeof(half));
    }
}

}  // namespace

void kv_append_ref(Exec& exec, const AttentionRun* runs, int n_runs, const float* k, const float* v) {
    for (int s = 0; s < n_runs; ++s) {
        const AttentionRun& run = runs[s];
        const KvView& kv = run.kv;
        exec.team().parallel_for(run.n_rows, 16, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t j = begin; j < end; ++j) {
                for (int h = 0; h < kv.n_head_kv; ++h) {
                    const std::int64_t in = ((run.first_row + j) * kv.n_head_kv + h) * kv.head_dim;
                    store_row(kv.type, k + in, kv.head_dim, kv.k_row(run.pos + j, h));
                    store_row(kv.type, v + in, kv.head_dim, kv.v_row(run.pos + j, h));
                }
            }
        });
    }
}

}  // namespace pantheon::kernels

#include "kernels/attention/kv_append.h"
#include "kernels/attention/kv_rows.h"

namespace pantheon::kernels {

void kv_append_ref(Exec& exec, const AttentionRun* runs, int n_runs, const float* k, const float* v) {
    for (int s = 0; s < n_runs; ++s) {
        const AttentionRun& run = runs[s];
        const KvView& kv = run.kv;
        exec.team().parallel_for(run.n_rows, 16, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t j = begin; j < end; ++j) {
                const std::int64_t r = run.pos + j;
                for (int h = 0; h < kv.n_head_kv; ++h) {
                    const std::int64_t in = ((run.first_row + j) * kv.n_head_kv + h) * kv.head_dim;
                    store_kv_row(kv.type, k + in, kv.head_dim, kv.k_row(r, h));
                    store_kv_row(kv.type, v + in, kv.head_dim, kv.v_row(r, h));
                    if (!kv.half_page(r, h)) continue;
                    store_kv_row(KvRowType::f16, k + in, kv.head_dim, kv.half_k_row(r, h));
                    store_kv_row(KvRowType::f16, v + in, kv.head_dim, kv.half_v_row(r, h));
                }
            }
        });
    }
}

}  // namespace pantheon::kernels

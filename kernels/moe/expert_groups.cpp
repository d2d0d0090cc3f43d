#include <algorithm>

#include "kernels/moe/expert_linear.h"

namespace pantheon::kernels {

ExpertGroups group_by_expert(const std::int32_t* ids, int n_pairs, int n_expert, std::int32_t* active,
                             std::int32_t* begin, std::int32_t* pairs) {
    // Counting sort; begin serves as the counters of all experts first and is then closed up over the active
    // ones.
    std::fill_n(begin, n_expert + 1, 0);
    for (int p = 0; p < n_pairs; ++p) ++begin[ids[p] + 1];
    for (int e = 0; e < n_expert; ++e) begin[e + 1] += begin[e];
    for (int p = 0; p < n_pairs; ++p) pairs[begin[ids[p]]++] = p;  // begin[e] is now the end of e's pairs

    int n_active = 0;
    std::int32_t start = 0;
    for (std::int32_t e = 0; e < n_expert; ++e) {
        const std::int32_t end = begin[e];
        if (end == start) continue;
        active[n_active] = e;
        begin[n_active] = start;
        ++n_active;
        start = end;
    }
    begin[n_active] = n_pairs;
    return {n_active, active, begin, pairs};
}

}  // namespace pantheon::kernels

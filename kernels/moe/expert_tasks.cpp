#include <algorithm>

#include "kernels/moe/expert_ffn.h"

namespace pantheon::kernels {

int max_expert_tasks(int n_rows, int n_used, int n_expert) {
    const int n_pairs = n_rows * n_used;
    return std::min(n_expert, n_pairs) + n_pairs / ExpertTask::kMaxRows + n_rows / ExpertTask::kMaxRows + 1;
}

int plan_expert_tasks(const ExpertGroups& groups, int n_rows, ExpertTask* tasks) {
    int n = 0;
    const auto add = [&](std::int32_t expert, std::int32_t begin, std::int32_t end) {
        for (; begin < end; begin += ExpertTask::kMaxRows)
            tasks[n++] = {expert, begin, std::min(end, begin + ExpertTask::kMaxRows)};
    };
    add(ExpertTask::kShared, 0, n_rows);
    for (int a = 0; a < groups.n_active; ++a) add(groups.active[a], groups.begin[a], groups.begin[a + 1]);
    return n;
}

}  // namespace pantheon::kernels

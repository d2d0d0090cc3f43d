#include "actors/kv_pool.h"

#include <algorithm>
#include <string>

#include "actors/step_pacer.h"

namespace pantheon::actors {

std::uint64_t kv_bytes_needed(const model::CheckpointSizes& sizes, const Limits& limits, std::int64_t n_rows,
                              std::int64_t n_step) {
    // The sink and what is read behind it begin and end within a block, and a step adds its rows first.
    const std::int64_t n_kept = limits.n_ctx + n_step + 2 * std::int64_t{sizes.block_rows};
    return sizes.kv_bytes_growing(limits.slides ? std::min(n_rows, n_kept) : n_rows, n_step);
}

std::uint64_t kv_bytes_of_longest(const model::CheckpointSizes& sizes, const Limits& limits) {
    constexpr std::int64_t kEndless = 1LL << 40;
    const std::int64_t n_step = std::min<std::int64_t>(kMaxChunk, limits.n_ctx);
    return kv_bytes_needed(sizes, limits, limits.slides ? kEndless : limits.n_ctx, n_step);
}

Result<std::uint64_t> choose_kv_pool(std::optional<std::uint64_t> asked, const model::CheckpointSizes& sizes,
                                     const Limits& limits, int n_slots, std::uint64_t free_bytes) {
    const std::uint64_t longest = kv_bytes_of_longest(sizes, limits);
    if (!asked)
        return std::max(longest, std::min(static_cast<std::uint64_t>(n_slots) * longest, free_bytes / 2));
    if (*asked >= longest) return *asked;
    return Error(Code::invalid_argument,
                 "kv.pool_bytes: " + std::to_string(*asked) + " bytes hold no sequence of kv.n_ctx = " +
                     std::to_string(limits.n_ctx) + " tokens, which takes up to " + std::to_string(longest));
}

}  // namespace pantheon::actors

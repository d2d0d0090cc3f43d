// How large the KV pool of an engine is and what a sequence takes of it. Pure functions, tested by table.
#pragma once

#include <cstdint>
#include <optional>

#include "actors/settings.h"
#include "model/state/checkpoint_sizes.h"
#include "runtime/base/status.h"

namespace pantheon::actors {

/// The most KV, in bytes, that a sequence takes until it has n_rows rows, at most n_step of them added in one
/// step. A context that slides lets go of what it no longer reads.
std::uint64_t kv_bytes_needed(const model::CheckpointSizes& sizes, const Limits& limits, std::int64_t n_rows,
                              std::int64_t n_step);

/// The same for the longest sequence that there may be.
std::uint64_t kv_bytes_of_longest(const model::CheckpointSizes& sizes, const Limits& limits);

/// kv.pool_bytes, or, when it is absent, what n_slots of the longest sequences take, half of the free memory
/// at most, but never less than one of them: memory is taken as sequences grow, and short ones do not need
/// it. invalid_argument, with both numbers: the pool that was asked for does not hold one.
Result<std::uint64_t> choose_kv_pool(std::optional<std::uint64_t> asked, const model::CheckpointSizes& sizes,
                                     const Limits& limits, int n_slots, std::uint64_t free_bytes);

}  // namespace pantheon::actors

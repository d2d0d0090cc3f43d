// What the state of a sequence takes, from its length alone.
#pragma once

#include <algorithm>
#include <cstdint>

namespace pantheon::model {

/// Recurrent states, whose size is always the same, and KV in blocks of `block_rows` rows. The first `sink`
/// and the last `window` rows are kept in f16 as well where half_block_bytes is not 0.
struct CheckpointSizes {
    std::uint64_t image_bytes = 0;
    std::uint64_t block_bytes = 0;
    std::int32_t block_rows = 64;
    std::uint64_t half_block_bytes = 0;
    std::int32_t sink = 0;
    std::int32_t window = 0;
    // What a parked sequence takes beyond that: its recurrent states are in f32 where checkpoints have f16.
    std::uint64_t parked_extra_bytes = 0;

    std::int64_t n_blocks(std::int64_t n_rows) const { return (n_rows + block_rows - 1) / block_rows; }

    /// f16 blocks of a checkpoint of n_rows rows.
    std::int64_t n_half_blocks(std::int64_t n_rows) const {
        if (half_block_bytes == 0) return 0;
        const std::int64_t n = n_blocks(n_rows), n_sink = std::min(n_blocks(sink), n);
        if (window == 0) return n_sink;
        const std::int64_t first_of_window = std::max<std::int64_t>(0, n_rows - window) / block_rows;
        return n_sink + n - std::clamp(first_of_window, n_sink, n);
    }
    std::uint64_t half_bytes(std::int64_t n_rows) const {
        return static_cast<std::uint64_t>(n_half_blocks(n_rows)) * half_block_bytes;
    }
    /// KV of a checkpoint of n_rows rows.
    std::uint64_t kv_bytes(std::int64_t n_rows) const {
        return static_cast<std::uint64_t>(n_blocks(n_rows)) * block_bytes + half_bytes(n_rows);
    }
    /// The most KV that a sequence takes while it grows to n_rows in steps of at most n_step: a step keeps
    /// its rows in f16 until it is done, beside the window before it.
    std::uint64_t kv_bytes_growing(std::int64_t n_rows, std::int64_t n_step) const {
        const std::int64_t n = n_blocks(n_rows);
        std::int64_t n_half = half_block_bytes == 0 ? 0 : n_blocks(sink);
        // So many consecutive rows touch at most this many blocks.
        if (half_block_bytes > 0 && window > 0) n_half += (window + n_step + block_rows - 2) / block_rows + 1;
        return static_cast<std::uint64_t>(n) * block_bytes +
               static_cast<std::uint64_t>(std::min(n_half, n)) * half_block_bytes;
    }
};

}  // namespace pantheon::model

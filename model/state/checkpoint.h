// What a sequence was at one position, kept beside the slots so that others can start from there.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "model/state/checkpoint_sizes.h"
#include "model/state/image_format.h"

namespace pantheon::model {

/// Immutable. Holding it keeps the memory behind it; the recurrent states are exact or rounded (ImageFormat),
/// KV blocks are shared with whatever grew from or led to this position. What is behind it is the executor's
/// own.
class Checkpoint {
  public:
    virtual ~Checkpoint() = default;
    Checkpoint(const Checkpoint&) = delete;
    Checkpoint& operator=(const Checkpoint&) = delete;

    std::int32_t length() const { return length_; }  // tokens evaluated
    /// Names of the KV blocks of rows 0 … length − 1, in order. Equal names are the same memory.
    const std::vector<std::uint64_t>& kv_blocks() const { return kv_blocks_; }

  protected:
    Checkpoint(std::int32_t length, std::vector<std::uint64_t> kv_blocks)
        : length_(length), kv_blocks_(std::move(kv_blocks)) {}

  private:
    std::int32_t length_;
    std::vector<std::uint64_t> kv_blocks_;
};

using CheckpointPtr = std::shared_ptr<const Checkpoint>;

}  // namespace pantheon::model

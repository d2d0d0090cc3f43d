// A checkpoint as bytes, for disks. The bytes mean the same wherever model and layout agree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "model/state/checkpoint.h"
#include "runtime/base/status.h"

namespace pantheon::model {

/// Immutable, and usable from any thread: what it reads never changes, what it makes is new.
class CheckpointCodec {
  public:
    using Sink = std::function<Status(std::span<const std::byte>)>;
    /// Fills the span or fails.
    using Source = std::function<Status(std::span<std::byte>)>;

    virtual ~CheckpointCodec() = default;
    /// What two codecs must have in common to understand each other: shapes, KV format and image format.
    virtual std::string layout() const = 0;
    /// Bytes that encode() gives for a sequence of this length.
    virtual std::uint64_t encoded_bytes(std::int32_t length) const = 0;
    /// States, then the KV rows of the sequence and no others.
    virtual Status encode(const Checkpoint& checkpoint, const Sink& sink) const = 0;
    /// The inverse; the executor of this model takes it like one of its own. resource_exhausted: no memory.
    virtual Result<CheckpointPtr> decode(std::int32_t length, const Source& source) const = 0;
};

}  // namespace pantheon::model

// The head of one GGUF file: metadata and tensor infos, checked against the bytes that are really there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/gguf/gguf_file.h"
#include "runtime/base/status.h"

namespace pantheon::model {

struct GgufHead {
    std::uint32_t version = 0;
    std::uint64_t head_bytes = 0;  // up to the end of the tensor infos
    GgufMetadata metadata;
    std::vector<GgufTensor> tensors;  // offsets from the start of the file; shard is 0
};

/// Every tensor of the result lies inside `file`, overlaps no other, and has a type of known size. Messages
/// do not name the file: the caller adds its path.
Result<GgufHead> parse_gguf_head(std::span<const std::byte> file);

}  // namespace pantheon::model

// What `info` prints of a model file.
#pragma once

#include <string>

#include "model/gguf/gguf_file.h"
#include "runtime/base/json.h"

namespace pantheon::cli {

/// {arch, kv, tensors: [{name, type, ne, offset, bytes, file}], types: {type: number of tensors}}. offset
/// counts from the start of the shard that `file` names.
Json info_json(const model::GgufFile& file);

std::string info_text(const model::GgufFile& file);

}  // namespace pantheon::cli

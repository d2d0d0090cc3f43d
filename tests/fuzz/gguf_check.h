// What must hold after opening any bytes whatever as GGUF, shared by the fuzzer and by the mutation test.
#pragma once

#include <memory>
#include <string>

#include "model/gguf/gguf_file.h"

namespace pantheon::fuzz {

using OpenedGguf = Result<std::shared_ptr<const model::GgufFile>>;

/// What is wrong with the outcome; empty for a typed error that names the file, and for a file whose every
/// tensor can be read to its last byte and found by name.
std::string problem_with_gguf(const OpenedGguf& opened, const std::string& path);

}  // namespace pantheon::fuzz

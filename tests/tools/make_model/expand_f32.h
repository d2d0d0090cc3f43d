// The F32 expansion of a model: same metadata and tensors, every value as the dequantiser gives it.
#pragma once

#include <string>

#include "tests/tools/make_model/model_writer.h"

namespace pantheon::test {

/// Throws std::runtime_error. Streams: memory does not grow with the file.
WrittenModel expand_f32(const std::string& from, const std::string& to);

}  // namespace pantheon::test

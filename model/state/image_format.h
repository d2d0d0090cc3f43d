// In which format a checkpoint keeps the recurrent states.
#pragma once

#include <cstdint>

namespace pantheon::model {

enum class ImageFormat : std::uint8_t {
    f32,  // exact: a sequence goes on as if it had never stopped
    f16,  // rounded, in half the bytes: a sequence that goes on from it is another one, nearly the same
};

}  // namespace pantheon::model

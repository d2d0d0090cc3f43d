// The type ids of GGUF metadata values.
#pragma once

#include <cstdint>
#include <string_view>

namespace pantheon::model {

enum class GgufType : std::int32_t {
    u8 = 0,
    i8 = 1,
    u16 = 2,
    i16 = 3,
    u32 = 4,
    i32 = 5,
    f32 = 6,
    boolean = 7,
    string = 8,
    array = 9,
    u64 = 10,
    i64 = 11,
    f64 = 12,
};

/// "u32"; "?" for an unknown id.
std::string_view gguf_type_name(std::int32_t type);

/// A tensor's type as people write it, "Q4_K"; "?" for an unknown id.
std::string_view gguf_tensor_type_name(std::int32_t type);

/// Least number of bytes that a value of this type takes in a file; 0 for unknown ids and for arrays.
std::uint64_t gguf_type_min_bytes(std::int32_t type);

}  // namespace pantheon::model

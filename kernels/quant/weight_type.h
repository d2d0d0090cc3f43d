// The tensor types of GGUF files: names, block shapes, and which of them this build can compute with.
#pragma once

#include <cstdint>
#include <string_view>

namespace pantheon::kernels {

/// Numeric values are the type ids of the file format (ggml).
enum class WeightType : std::int32_t {
    f32 = 0,
    f16 = 1,
    q4_0 = 2,
    q4_1 = 3,
    q5_0 = 6,
    q5_1 = 7,
    q8_0 = 8,
    q2_k = 10,
    q3_k = 11,
    q4_k = 12,
    q5_k = 13,
    q6_k = 14,
    iq2_xxs = 16,
    iq2_xs = 17,
    iq3_xxs = 18,
    iq1_s = 19,
    iq4_nl = 20,
    iq3_s = 21,
    iq2_s = 22,
    iq4_xs = 23,
    iq1_m = 29,
    bf16 = 30,
    mxfp4 = 39,
};

struct WeightTypeInfo {
    std::int32_t id;
    std::string_view name;  // "Q4_K"
    std::int32_t block_elems;
    std::int32_t block_bytes;
    bool is_supported;  // false: known by name and size, cannot be computed with
};

/// Every id the format knows, supported or not; nullptr for retired and unknown ids.
const WeightTypeInfo* weight_type_info(std::int32_t id);
inline const WeightTypeInfo* weight_type_info(WeightType type) {
    return weight_type_info(static_cast<std::int32_t>(type));
}
/// Case-insensitive ("q4_k", "Q4_K"); nullptr for an unknown name.
const WeightTypeInfo* weight_type_by_name(std::string_view name);

/// Bytes of a row of n elements; n must be a multiple of block_elems.
inline std::int64_t row_bytes(const WeightTypeInfo& info, std::int64_t n) {
    return n / info.block_elems * info.block_bytes;
}

}  // namespace pantheon::kernels

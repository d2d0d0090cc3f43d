// Inputs of products in tests, and what the cpu backend makes of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "kernels/linear/activation_rows.h"
#include "kernels/quant/weight_type.h"

namespace pantheon::kernels::test {

/// Rows with storage of their own; storage at an odd address, which must not matter.
struct Input {
    Input(std::vector<float> x, std::int64_t n_in)
        : values(std::move(x)),
          storage(activation_storage_bytes(n_in, n_rows(n_in)) + 1),
          rows(values.data(), n_in, n_rows(n_in), storage.data() + 1) {}

    std::vector<float> values;
    std::vector<std::byte> storage;
    ActivationRows rows;

  private:
    int n_rows(std::int64_t n_in) const {
        return static_cast<int>(static_cast<std::int64_t>(values.size()) / n_in);
    }
};

/// x as a weight of this type meets it on the cpu backend: int8 blocks as wide as the weight's, or f32.
inline std::vector<float> as_quantised(std::vector<float> x, WeightType type) {
    const std::size_t width = static_cast<std::size_t>(weight_type_info(type)->block_elems);
    if (width == 1) return x;
    for (std::size_t b = 0; b < x.size(); b += width) {
        float largest = 0;
        for (std::size_t i = b; i < b + width; ++i) largest = std::max(largest, std::fabs(x[i]));
        double with_x = 0, with_q = 0;
        std::vector<float> q(width);
        for (std::size_t i = 0; i < width; ++i) {
            q[i] = std::nearbyint(x[b + i] * (127.0f / largest));
            with_x += static_cast<double>(x[b + i]) * q[i];
            with_q += static_cast<double>(q[i]) * q[i];
        }
        for (std::size_t i = 0; i < width; ++i) x[b + i] = static_cast<float>(q[i] * (with_x / with_q));
    }
    return x;
}

}  // namespace pantheon::kernels::test

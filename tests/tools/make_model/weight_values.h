// What goes into each tensor: magnitudes that keep a random network well behaved, the structured router with
// wide gaps, and the weights of the golden fixture.
#pragma once

#include <cstdint>

#include "kernels/quant/weight_type.h"
#include "tests/support/gguf_writer.h"
#include "tests/tools/make_model/model_shape.h"
#include "tests/tools/make_model/tensor_plan.h"

namespace pantheon::test {

enum class WeightKind {
    random,   // magnitudes by role, standard deviation about 1 / sqrt(inputs)
    fixture,  // a formula of tensor name and element index, float types only
};
enum class RouterGap {
    normal,
    wide,  // the experts depend on the token alone, by channels that no layer writes: rounding changes none
};

struct WeightOptions {
    WeightKind kind = WeightKind::random;
    RouterGap router_gap = RouterGap::normal;
    std::uint64_t seed = 1;
};

/// Throws std::invalid_argument when the type cannot hold the tensor.
GgufWriter::DataFn weight_data(const PlannedTensor& tensor, kernels::WeightType type, const ModelShape& shape,
                               const WeightOptions& options);

}  // namespace pantheon::test

// Which tensors a model of a given shape has, in the order of the file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/tools/make_model/model_shape.h"

namespace pantheon::test {

/// A run of elements of a tensor's random stream. A fused tensor is built from runs of the streams of the two
/// that it replaces, so that the fused and the separate form of a model hold the same weights.
struct StreamRun {
    std::string stream;  // a tensor name
    std::int64_t first;  // element of that tensor
    std::int64_t n_elems;
    int slice;  // expert, 0 where there is none
};

struct PlannedTensor {
    std::string name;
    std::vector<std::int64_t> ne;  // ne[0] fastest
    bool may_be_quantised;         // the quantiser leaves 1-D tensors, routers and the convolution in F32
    std::vector<StreamRun> runs;

    std::int64_t n_elems() const;
};

std::vector<PlannedTensor> plan_tensors(const ModelShape& shape, std::int64_t n_vocab);

}  // namespace pantheon::test

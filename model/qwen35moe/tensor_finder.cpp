#include "model/qwen35moe/tensor_finder.h"

#include <algorithm>

#include "kernels/quant/dequantize.h"
#include "kernels/quant/weight_type.h"

namespace pantheon::model {
namespace {

constexpr std::string_view kWeightSuffix = ".weight";

std::string shape_text(std::vector<std::int64_t> shape) {
    std::string text = "[";
    for (std::size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
    return text + "]";
}

/// Slowest first, without the 1s that writers may or may not keep at the slow end.
std::vector<std::int64_t> stripped(std::vector<std::int64_t> shape) {
    std::size_t n_ones = 0;
    while (n_ones + 1 < shape.size() && shape[n_ones] == 1) ++n_ones;
    shape.erase(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(n_ones));
    return shape;
}

}  // namespace

void TensorFinder::fail(Code code, const std::string& name, const std::string& what) {
    if (error_) return;
    error_ = Error(code, name + ": " + what);
    if (!context_.empty()) error_ = std::move(*error_).with_context(context_);
}

const GgufTensor* TensorFinder::require(const std::string& name, TensorShape shape) {
    const GgufTensor* tensor = file_.find_tensor(name);
    if (!tensor) return fail(Code::data_loss, name, "missing"), nullptr;
    const std::vector<std::int64_t> have = stripped({tensor->ne.rbegin(), tensor->ne.rend()});
    const std::vector<std::int64_t> want = stripped(shape);
    if (have != want)
        return fail(Code::data_loss, name, "shape " + shape_text(have) + ", want " + shape_text(want)),
               nullptr;
    const kernels::WeightTypeInfo* type = kernels::weight_type_info(tensor->type);
    if (!type || !type->is_supported) {
        const std::string type_name = type ? std::string(type->name) : std::to_string(tensor->type);
        return fail(Code::unimplemented, name, "type " + type_name + " is not supported"), nullptr;
    }
    // NVFP4 files carry factors beside their weights. Leaving them out would give wrong magnitudes without a
    // sign.
    if (name.ends_with(kWeightSuffix)) {
        const std::string scale = name.substr(0, name.size() - kWeightSuffix.size()) + ".scale";
        if (contains(scale))
            return fail(Code::unimplemented, scale, "companion scales are not supported"), nullptr;
    }
    if (used_.insert(name).second) used_bytes_ += tensor->n_bytes;
    max_row_elems_ = std::max(max_row_elems_, tensor->ne[0]);
    return tensor;
}

kernels::WeightMatrix TensorFinder::matrix(const std::string& name, std::int64_t n_out, std::int64_t n_in) {
    const GgufTensor* tensor = require(name, {n_out, n_in});
    if (!tensor) return {};
    const kernels::WeightTypeInfo& type = *kernels::weight_type_info(tensor->type);
    return {static_cast<kernels::WeightType>(type.id), file_.bytes(*tensor).data(), n_in, n_out,
            kernels::row_bytes(type, n_in)};
}

kernels::ExpertMatrices TensorFinder::experts(const std::string& name, std::int64_t n_expert,
                                              std::int64_t n_out, std::int64_t n_in) {
    const GgufTensor* tensor = require(name, {n_expert, n_out, n_in});
    if (!tensor) return {};
    const kernels::WeightTypeInfo& type = *kernels::weight_type_info(tensor->type);
    const std::int64_t row_bytes = kernels::row_bytes(type, n_in);
    const kernels::WeightMatrix first{static_cast<kernels::WeightType>(type.id), file_.bytes(*tensor).data(),
                                      n_in, n_out, row_bytes};
    return {first, n_expert, row_bytes * n_out};
}

void TensorFinder::vector(const std::string& name, TensorShape shape, std::vector<float>& values) {
    if (const GgufTensor* tensor = require(name, shape)) pending_.push_back({tensor, &values});
}

void TensorFinder::read_vectors() {
    for (const PendingVector& pending : pending_) {
        const GgufTensor& tensor = *pending.tensor;
        const auto type = static_cast<kernels::WeightType>(tensor.type);
        const std::int64_t n_row = tensor.ne[0];
        const std::int64_t n_rows = tensor.ne[1] * tensor.ne[2] * tensor.ne[3];
        const std::int64_t stride = kernels::row_bytes(*kernels::weight_type_info(type), n_row);
        pending.values->resize(static_cast<std::size_t>(n_row * n_rows));
        const std::byte* bytes = file_.bytes(tensor).data();
        for (std::int64_t r = 0; r < n_rows; ++r)
            kernels::dequantize_row(type, bytes + r * stride, pending.values->data() + r * n_row, n_row);
    }
    pending_.clear();
}

}  // namespace pantheon::model

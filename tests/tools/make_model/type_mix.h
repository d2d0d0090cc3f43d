// Which type each tensor gets: one type for all, or a mix as llama.cpp's quantiser picks it for this
// architecture.
#pragma once

#include <cstdint>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/quant/weight_type.h"
#include "tests/tools/make_model/tensor_plan.h"

namespace pantheon::test {

struct TypeOverride {
    std::regex pattern;  // ECMAScript, found anywhere in the tensor name
    const kernels::WeightTypeInfo* type;
};

/// "REGEX=TYPE"; throws std::invalid_argument saying what is wrong.
TypeOverride parse_type_override(const std::string& text);

class TypeMix {
  public:
    /// A type name ("Q4_0"), or one of q4_k_m, q3_k_m, q8_0, mxfp4_moe; throws std::invalid_argument.
    explicit TypeMix(std::string_view name);

    /// The type of every tensor of a plan, in its order. Overrides come first, the first that matches wins;
    /// what does not fit into the rows of a tensor falls back as in the quantiser.
    std::vector<const kernels::WeightTypeInfo*> choose(const std::vector<PlannedTensor>& tensors,
                                                       const ModelShape& shape,
                                                       const std::vector<TypeOverride>& overrides) const;

    /// general.file_type
    std::uint32_t file_type() const { return file_type_; }

    static std::string names();  // for the help text

  private:
    enum class Kind { uniform, q4_k_m, q3_k_m, mxfp4_moe };
    Kind kind_ = Kind::uniform;
    const kernels::WeightTypeInfo* base_ = nullptr;
    std::uint32_t file_type_ = 0;
};

}  // namespace pantheon::test

// Writes a whole synthetic model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/gguf_writer.h"
#include "tests/tools/make_model/model_shape.h"
#include "tests/tools/make_model/type_mix.h"
#include "tests/tools/make_model/weight_values.h"

namespace pantheon::test {

struct ModelSpec {
    ModelShape shape;
    std::string mix = "q4_k_m";
    std::vector<TypeOverride> type_overrides;
    WeightOptions weights;
    std::string tokenizer_json;  // empty: a vocabulary of our own
    std::string name;            // general.name
    std::uint32_t version = 3;
    std::uint32_t alignment = 32;
    int n_files = 1;

    // Changes to the finished file, for tests of what a loader accepts.
    std::vector<std::pair<std::string, GgufTyped>> set_keys;  // replaces or adds
    std::vector<std::string> drop_keys;                       // regular expressions, found anywhere
    std::vector<std::string> drop_tensors;
};

struct WrittenModel {
    std::vector<std::string> paths;
    std::size_t n_tensors = 0;
    std::uint64_t data_bytes = 0;
    std::string type_counts;  // "25 F32, 40 Q4_K"
};

/// Throws std::invalid_argument for a model that cannot be, std::runtime_error when it cannot be written. A
/// split set takes path's name without ".gguf" as its prefix.
WrittenModel write_model(const ModelSpec& spec, const std::string& path);

/// "u32:5", "string:abc", "i32s:1,2,3" ...; throws std::invalid_argument.
GgufTyped parse_typed_value(const std::string& text);

}  // namespace pantheon::test

// Small qwen35moe files for tests: any shape, exporter variants, mixed types; and the values that are in
// them.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/quant/weight_type.h"
#include "model/gguf/gguf_file.h"
#include "model/qwen35moe/weights.h"
#include "runtime/base/status.h"
#include "tests/support/gguf_writer.h"

namespace pantheon::test {

/// The defaults are the fixture of the golden data.
struct TinyShape {
    std::string label = "fixture";
    int n_embd = 64, n_vocab = 300, n_layer = 4, interval = 4;
    int n_head = 4, n_head_kv = 2, head_dim = 32, rope_dim = 16;
    std::vector<std::int32_t> sections = {3, 3, 2, 0};
    double freq_base = 1e7, rope_factor = 1.0;
    int d_conv = 4, gdn_head_dim = 16, gdn_n_head_k = 2, gdn_n_head_v = 4;
    int n_expert = 8, n_expert_used = 2, n_ff_exp = 32, n_ff_shexp = 32;
    bool has_nextn = true;                       // metadata and tensors
    bool is_tied = false;                        // no output.weight
    bool is_fused = false;                       // ffn_gate_up_exps
    std::vector<std::int32_t> recurrent_layers;  // overrides the interval when not empty
    /// By the end of the tensor's name; F32 where nothing matches.
    std::map<std::string, kernels::WeightType> types;

    int key_dim() const { return gdn_head_dim * gdn_n_head_k; }
    int value_dim() const { return gdn_head_dim * gdn_n_head_v; }
    int conv_dim() const { return 2 * key_dim() + value_dim(); }
    bool is_attention(int layer) const {
        return recurrent_layers.empty() ? (layer + 1) % interval == 0
                                        : recurrent_layers[static_cast<std::size_t>(layer)] == 0;
    }
};

struct TinyTensor {
    std::string name;
    std::vector<std::int64_t> ne;  // ne[0] fastest
    kernels::WeightType type = kernels::WeightType::f32;
    std::string bytes;
    std::vector<float> values;  // what the bytes expand to
};

/// A file in pieces, to be changed before it is written.
struct TinyModel {
    TinyShape shape;
    std::vector<std::pair<std::string, GgufTyped>> keys;
    std::vector<TinyTensor> tensors;

    void set(const std::string& key, GgufTyped value);  // replaces or appends
    void drop_key(const std::string& key);
    TinyTensor& tensor(const std::string& name);
    bool contains(const std::string& name) const;
    void drop_tensor(const std::string& name);
    void drop_tensors_of_block(int block);
    /// Adds or replaces an F32 tensor filled by the fixture's rule for its name.
    void put(const std::string& name, std::vector<std::int64_t> ne);

    GgufWriter writer() const;
    std::shared_ptr<const model::GgufFile> open() const;  // throws when the file itself is refused
    Result<std::shared_ptr<const model::Weights>> load() const { return model::Weights::load(open()); }
};

TinyModel tiny_model(const TinyShape& shape = {});

/// Element i of the fixture's tensor of that name.
float fixture_value(const std::string& name, std::uint64_t i);

/// The token sequence of the golden data.
std::vector<std::int32_t> golden_tokens();
/// A longer sequence, seeded.
std::vector<std::int32_t> random_tokens(int n, int n_vocab, std::uint64_t seed);

/// Shapes that tell right from wrong where the fixture cannot.
std::vector<TinyShape> all_tiny_shapes();

}  // namespace pantheon::test

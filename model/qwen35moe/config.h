// The shape of a qwen35moe model, read from a file's metadata once. The file's ssm.* keys are translated
// here; everything after says gdn_.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "model/gguf/gguf_file.h"
#include "runtime/base/status.h"

namespace pantheon::model {

constexpr std::string_view kArchitecture = "qwen35moe";

/// What a file says about its multi-token-prediction ("nextn") block, and what it holds. The block is never
/// run.
struct NextnInfo {
    enum class State {
        none,             // neither metadata nor tensors
        present,          // its tensors are there
        promised_absent,  // the metadata counts it, the tensors are missing (Nex-N2 conversions)
    };
    State state = State::none;
    int n_promised = 0;   // nextn_predict_layers as written
    int first_block = 0;  // the block index at which it starts when present

    /// One line for the log and for `status`.
    std::string describe() const;
};

enum class MixerKind { gdn, attention };

struct ModelConfig {
    std::string name;  // general.name, may be empty

    int n_layer = 0;  // blocks that are run: block_count without the nextn block
    NextnInfo nextn;
    std::vector<MixerKind> mixer;  // [n_layer]
    int n_ctx_train = 0;
    int n_embd = 0;
    float rms_eps = 0;  // every RMS norm, and the floor of the L2 norm

    int n_head = 0;
    int n_head_kv = 0;
    int head_dim = 0;
    int rope_dim = 0;
    std::array<int, 4> rope_sections{};
    double rope_freq_base = 0;
    double rope_freq_scale = 1;

    int gdn_n_head_k = 0;
    int gdn_n_head_v = 0;
    int gdn_head_dim = 0;
    int gdn_d_conv = 0;

    int n_expert = 0;
    int n_expert_used = 0;
    int n_ff_exp = 0;
    int n_ff_shexp = 0;

    int gdn_d_key() const { return gdn_head_dim * gdn_n_head_k; }
    int gdn_d_inner() const { return gdn_head_dim * gdn_n_head_v; }
    int gdn_conv_dim() const { return 2 * gdn_d_key() + gdn_d_inner(); }
    int n_attention_layers() const;
    int n_gdn_layers() const { return n_layer - n_attention_layers(); }
};

/// Whether the file has a tensor of that name.
using HasTensor = std::function<bool(std::string_view name)>;

/// Reads and checks everything that metadata alone can tell. invalid_argument or unimplemented, naming the
/// key; a file of another architecture is refused by its name.
Result<ModelConfig> read_config(const GgufMetadata& metadata, const HasTensor& has_tensor);

}  // namespace pantheon::model

// The dimensions of a synthetic qwen35moe model, and the named presets.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pantheon::test {

enum class Nextn { none, present, promised_only };  // promised_only: in the metadata, but without tensors

struct ModelShape {
    int n_embd = 256;
    int n_layer = 4;  // trunk
    int interval = 4;
    int n_head = 4;
    int n_head_kv = 2;
    int head_dim = 64;
    int rope_dim = 32;
    std::array<int, 4> rope_sections{};  // all zero: shared out over t, h, w
    double rope_base = 1e7;
    double eps = 1e-6;
    int gdn_n_head_k = 2;
    int gdn_n_head_v = 4;
    int gdn_head_dim = 64;
    int gdn_d_conv = 4;
    int n_expert = 8;
    int n_expert_used = 2;
    int n_ff_exp = 256;
    int n_ff_shexp = 256;
    int n_vocab = 0;  // 0: as many as the vocabulary has
    int context_length = 262144;
    bool is_tied = false;
    bool fuses_gate_up = false;
    Nextn nextn = Nextn::none;

    int gdn_inner() const { return gdn_head_dim * gdn_n_head_v; }
    int gdn_conv_dim() const { return 2 * gdn_head_dim * gdn_n_head_k + gdn_inner(); }
    bool is_attention(int layer) const { return (layer + 1) % interval == 0; }
    int block_count() const { return n_layer + (nextn == Nextn::none ? 0 : 1); }
    /// Blocks whose tensors are in the file.
    int n_written_blocks() const { return n_layer + (nextn == Nextn::present ? 1 : 0); }
    std::array<int, 4> sections() const;

    /// What makes the shape impossible; empty when it is fine.
    std::string problem() const;
};

struct Preset {
    std::string_view name, what;
    ModelShape shape;
    std::string_view mix;  // a type or a mix
    bool has_fixture_weights;
};

/// nullptr for an unknown name.
const Preset* find_preset(std::string_view name);
/// "tiny: ..." one a line, for the help text.
std::string describe_presets();

}  // namespace pantheon::test

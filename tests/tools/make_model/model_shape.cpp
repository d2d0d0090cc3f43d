#include "tests/tools/make_model/model_shape.h"

namespace pantheon::test {
namespace {

ModelShape tiny_shape() {
    ModelShape s;
    s.n_vocab = 2048;
    return s;
}

ModelShape fixture_shape() {
    ModelShape s;
    s.n_embd = 64;
    s.head_dim = 32;
    s.rope_dim = 16;
    s.rope_sections = {3, 3, 2, 0};
    s.gdn_head_dim = 16;
    s.n_ff_exp = 32;
    s.n_ff_shexp = 32;
    s.n_vocab = 300;
    s.nextn = Nextn::present;
    return s;
}

ModelShape real_shape(int n_layer) {
    ModelShape s;
    s.n_embd = 2048;
    s.n_layer = n_layer;
    s.n_head = 16;
    s.head_dim = 256;
    s.rope_dim = 64;
    s.gdn_n_head_k = 16;
    s.gdn_n_head_v = 32;
    s.gdn_head_dim = 128;
    s.n_expert = 256;
    s.n_expert_used = 8;
    s.n_ff_exp = 512;
    s.n_ff_shexp = 512;
    s.n_vocab = 248320;
    return s;
}

const Preset kPresets[] = {
    {"tiny", "4 layers, 8 experts, n_embd 256, vocabulary 2048: a few MB, runs at once", tiny_shape(),
     "q4_k_m", false},
    {"fixture", "the golden fixture: n_embd 64, 4 layers and a nextn block, all F32, weights by formula",
     fixture_shape(), "F32", true},
    {"real8", "8 layers of the dimensions of the 35B-A3B models, vocabulary 248320", real_shape(8), "q4_k_m",
     false},
    {"real40", "all 40 layers of those dimensions", real_shape(40), "q4_k_m", false},
};

}  // namespace

std::array<int, 4> ModelShape::sections() const {
    if (rope_sections != std::array<int, 4>{}) return rope_sections;
    // Pair i belongs to t, h or w by i mod 3: these counts cover every pair.
    const int n_pairs = rope_dim / 2;
    const int h = (n_pairs + 1) / 3, w = n_pairs / 3;
    return {n_pairs - h - w, h, w, 0};
}

std::string ModelShape::problem() const {
    struct Count {
        const char* name;
        int value, max;
    };
    const Count kCounts[] = {
        {"n-embd", n_embd, 1 << 20},
        {"layers", n_layer, 511},
        {"interval", interval, 1 << 20},
        {"heads", n_head, 1 << 16},
        {"kv-heads", n_head_kv, 1 << 16},
        {"head-dim", head_dim, 1 << 16},
        {"rope-dim", rope_dim, 1 << 16},
        {"gdn-heads-k", gdn_n_head_k, 1 << 16},
        {"gdn-heads-v", gdn_n_head_v, 1 << 16},
        {"gdn-head-dim", gdn_head_dim, 1 << 16},
        {"gdn-conv", gdn_d_conv, 64},
        {"experts", n_expert, 512},
        {"experts-used", n_expert_used, 512},
        {"ff", n_ff_exp, 1 << 20},
        {"shared-ff", n_ff_shexp, 1 << 20},
        {"context", context_length, 1 << 30},
    };
    for (const Count& c : kCounts) {
        if (c.value < 1 || c.value > c.max)
            return "--" + std::string(c.name) + " " + std::to_string(c.value) + ", want 1 to " +
                   std::to_string(c.max);
    }
    if (n_head % n_head_kv != 0) return "--heads must be a multiple of --kv-heads";
    if (gdn_n_head_v % gdn_n_head_k != 0) return "--gdn-heads-v must be a multiple of --gdn-heads-k";
    if (rope_dim % 2 != 0 || rope_dim > head_dim) return "--rope-dim must be even and at most --head-dim";
    if (n_expert_used > n_expert) return "--experts-used is larger than --experts";
    if (gdn_d_conv < 2) return "--gdn-conv must be at least 2";
    return {};
}

const Preset* find_preset(std::string_view name) {
    for (const Preset& preset : kPresets)
        if (preset.name == name) return &preset;
    return nullptr;
}

std::string describe_presets() {
    std::string text;
    for (const Preset& preset : kPresets)
        text += "  " + std::string(preset.name) + ": " + std::string(preset.what) + "\n";
    return text;
}

}  // namespace pantheon::test

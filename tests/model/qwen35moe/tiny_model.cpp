#include "tests/model/qwen35moe/tiny_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "kernels/quant/dequantize.h"
#include "tests/support/temp_dir.h"

namespace pantheon::test {
namespace {

using kernels::WeightType;

std::uint64_t fnv1a(const std::string& text) {
    std::uint64_t h = 0xcbf29ce484222325u;
    for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    return h;
}

std::uint64_t splitmix(std::uint64_t state) {
    std::uint64_t z = state + 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

struct Range {
    double mean, amp;
};

Range range_of(const std::string& name) {
    const auto ends = [&](const char* suffix) { return name.ends_with(suffix); };
    if (name == "token_embd.weight") return {0, 1};
    if (ends("ssm_a")) return {-0.75, 0.5};
    if (ends("ssm_dt.bias") || ends("ssm_dt")) return {-1, 1};
    if (ends("attn_q_norm.weight") || ends("attn_k_norm.weight")) return {1.5, 0.5};
    if (ends("norm.weight")) return {1, 0.5};
    if (ends("ssm_conv1d.weight")) return {0, 0.75};
    if (ends("attn_q.weight") || ends("attn_k.weight") || ends("ffn_gate_inp.weight")) return {0, 0.5};
    return {0, 0.25};
}

std::string encode_row(WeightType type, const float* x, std::int64_t n) {
    std::string out;
    const auto block_scale = [](const float* block, int n_block, float levels) {
        float largest = 0;
        for (int i = 0; i < n_block; ++i) largest = std::max(largest, std::fabs(block[i]));
        return kernels::half_to_float(kernels::float_to_half(largest / levels));
    };
    switch (type) {
        case WeightType::f32:
            out.assign(reinterpret_cast<const char*>(x), static_cast<std::size_t>(n) * sizeof(float));
            break;
        case WeightType::f16:
            for (std::int64_t i = 0; i < n; ++i) append_number(out, kernels::float_to_half(x[i]));
            break;
        case WeightType::bf16:
            for (std::int64_t i = 0; i < n; ++i) {
                std::uint32_t bits;
                std::memcpy(&bits, x + i, sizeof bits);
                append_number(out, static_cast<std::uint16_t>(bits >> 16));
            }
            break;
        case WeightType::q8_0:
            for (std::int64_t b = 0; b < n; b += 32) {
                const float d = block_scale(x + b, 32, 120);
                append_number(out, kernels::float_to_half(d));
                for (int i = 0; i < 32; ++i)
                    append_number(out, static_cast<std::int8_t>(std::lround(x[b + i] / d)));
            }
            break;
        case WeightType::q4_0:
            for (std::int64_t b = 0; b < n; b += 32) {
                const float d = block_scale(x + b, 32, 7);
                append_number(out, kernels::float_to_half(d));
                const auto level = [&](int i) {
                    return static_cast<unsigned>(std::clamp(std::lround(x[b + i] / d) + 8, 0l, 15l));
                };
                for (int i = 0; i < 16; ++i)
                    append_number(out, static_cast<std::uint8_t>(level(i) | level(i + 16) << 4));
            }
            break;
        default:
            throw std::logic_error("no encoder for this type in the tiny models");
    }
    return out;
}

TinyTensor make_tensor(const std::string& name, std::vector<std::int64_t> ne, WeightType type) {
    TinyTensor tensor{name, std::move(ne), type, {}, {}};
    const std::int64_t n_row = tensor.ne[0];
    std::int64_t n_rows = 1;
    for (std::size_t i = 1; i < tensor.ne.size(); ++i) n_rows *= tensor.ne[i];
    std::vector<float> row(static_cast<std::size_t>(n_row));
    tensor.values.resize(static_cast<std::size_t>(n_row * n_rows));
    for (std::int64_t r = 0; r < n_rows; ++r) {
        for (std::int64_t i = 0; i < n_row; ++i)
            row[static_cast<std::size_t>(i)] = fixture_value(name, static_cast<std::uint64_t>(r * n_row + i));
        const std::string bytes = encode_row(type, row.data(), n_row);
        kernels::dequantize_row(type, reinterpret_cast<const std::byte*>(bytes.data()),
                                tensor.values.data() + r * n_row, n_row);
        tensor.bytes += bytes;
    }
    return tensor;
}

class Builder {
  public:
    explicit Builder(const TinyShape& shape) : s_(shape) { model_.shape = shape; }

    TinyModel build() {
        keys();
        add("token_embd.weight", {s_.n_embd, s_.n_vocab});
        add("output_norm.weight", {s_.n_embd});
        if (!s_.is_tied) add("output.weight", {s_.n_embd, s_.n_vocab});
        for (int i = 0; i < s_.n_layer; ++i) block(i, s_.is_attention(i));
        if (s_.has_nextn) nextn(s_.n_layer);
        return std::move(model_);
    }

  private:
    void keys() {
        const auto key = [this](const char* name, GgufTyped value) {
            model_.set("qwen35moe." + std::string(name), std::move(value));
        };
        const auto u32 = [](int v) { return GgufTyped::u32(static_cast<std::uint32_t>(v)); };
        model_.set("general.architecture", GgufTyped::string("qwen35moe"));
        model_.set("general.name", GgufTyped::string(s_.label));
        key("block_count", u32(s_.n_layer + (s_.has_nextn ? 1 : 0)));
        if (s_.has_nextn) key("nextn_predict_layers", u32(1));
        key("context_length", u32(4096));
        key("embedding_length", u32(s_.n_embd));
        key("attention.head_count", u32(s_.n_head));
        key("attention.head_count_kv", u32(s_.n_head_kv));
        key("attention.key_length", u32(s_.head_dim));
        key("attention.value_length", u32(s_.head_dim));
        key("attention.layer_norm_rms_epsilon", GgufTyped::f32(1e-6f));
        key("rope.dimension_count", u32(s_.rope_dim));
        key("rope.dimension_sections", GgufTyped::i32s(s_.sections));
        key("rope.freq_base", GgufTyped::f32(static_cast<float>(s_.freq_base)));
        if (s_.rope_factor != 1.0) {
            key("rope.scaling.type", GgufTyped::string("linear"));
            key("rope.scaling.factor", GgufTyped::f32(static_cast<float>(s_.rope_factor)));
        }
        key("full_attention_interval", u32(s_.interval));
        if (!s_.recurrent_layers.empty())
            key("attention.recurrent_layers", GgufTyped::i32s(s_.recurrent_layers));
        key("ssm.conv_kernel", u32(s_.d_conv));
        key("ssm.state_size", u32(s_.gdn_head_dim));
        key("ssm.group_count", u32(s_.gdn_n_head_k));
        key("ssm.time_step_rank", u32(s_.gdn_n_head_v));
        key("ssm.inner_size", u32(s_.value_dim()));
        key("expert_count", u32(s_.n_expert));
        key("expert_used_count", u32(s_.n_expert_used));
        key("expert_feed_forward_length", u32(s_.n_ff_exp));
        key("expert_shared_feed_forward_length", u32(s_.n_ff_shexp));
    }

    void block(int i, bool is_attention) {
        const std::string b = "blk." + std::to_string(i) + ".";
        add(b + "attn_norm.weight", {s_.n_embd});
        if (is_attention) {
            add(b + "attn_q.weight", {s_.n_embd, 2 * s_.head_dim * s_.n_head});
            add(b + "attn_k.weight", {s_.n_embd, s_.head_dim * s_.n_head_kv});
            add(b + "attn_v.weight", {s_.n_embd, s_.head_dim * s_.n_head_kv});
            add(b + "attn_output.weight", {s_.head_dim * s_.n_head, s_.n_embd});
            add(b + "attn_q_norm.weight", {s_.head_dim});
            add(b + "attn_k_norm.weight", {s_.head_dim});
        } else {
            add(b + "attn_qkv.weight", {s_.n_embd, s_.conv_dim()});
            add(b + "attn_gate.weight", {s_.n_embd, s_.value_dim()});
            add(b + "ssm_conv1d.weight", {s_.d_conv, s_.conv_dim()});
            add(b + "ssm_dt.bias", {s_.gdn_n_head_v});
            add(b + "ssm_a", {s_.gdn_n_head_v});
            add(b + "ssm_beta.weight", {s_.n_embd, s_.gdn_n_head_v});
            add(b + "ssm_alpha.weight", {s_.n_embd, s_.gdn_n_head_v});
            add(b + "ssm_norm.weight", {s_.gdn_head_dim});
            add(b + "ssm_out.weight", {s_.value_dim(), s_.n_embd});
        }
        add(b + "post_attention_norm.weight", {s_.n_embd});
        add(b + "ffn_gate_inp.weight", {s_.n_embd, s_.n_expert});
        if (s_.is_fused) {
            add(b + "ffn_gate_up_exps.weight", {s_.n_embd, 2 * s_.n_ff_exp, s_.n_expert});
        } else {
            add(b + "ffn_gate_exps.weight", {s_.n_embd, s_.n_ff_exp, s_.n_expert});
            add(b + "ffn_up_exps.weight", {s_.n_embd, s_.n_ff_exp, s_.n_expert});
        }
        add(b + "ffn_down_exps.weight", {s_.n_ff_exp, s_.n_embd, s_.n_expert});
        add(b + "ffn_gate_inp_shexp.weight", {s_.n_embd});
        add(b + "ffn_gate_shexp.weight", {s_.n_embd, s_.n_ff_shexp});
        add(b + "ffn_up_shexp.weight", {s_.n_embd, s_.n_ff_shexp});
        add(b + "ffn_down_shexp.weight", {s_.n_ff_shexp, s_.n_embd});
    }

    void nextn(int i) {
        block(i, true);
        const std::string b = "blk." + std::to_string(i) + ".nextn.";
        add(b + "eh_proj.weight", {2 * s_.n_embd, s_.n_embd});
        add(b + "enorm.weight", {s_.n_embd});
        add(b + "hnorm.weight", {s_.n_embd});
        add(b + "shared_head_norm.weight", {s_.n_embd});
    }

    void add(const std::string& name, std::vector<std::int64_t> ne) {
        WeightType type = WeightType::f32;
        for (const auto& [suffix, wanted] : s_.types)
            if (name.ends_with(suffix)) type = wanted;
        model_.tensors.push_back(make_tensor(name, std::move(ne), type));
    }

    TinyShape s_;
    TinyModel model_;
};

}  // namespace

float fixture_value(const std::string& name, std::uint64_t i) {
    const Range range = range_of(name);
    const double u = static_cast<double>(splitmix(fnv1a(name) + i) >> 40) / 16777216.0;
    return static_cast<float>(range.mean + range.amp * (2 * u - 1));
}

void TinyModel::set(const std::string& key, GgufTyped value) {
    for (auto& [name, old] : keys)
        if (name == key) {
            old = std::move(value);
            return;
        }
    keys.emplace_back(key, std::move(value));
}

void TinyModel::drop_key(const std::string& key) {
    std::erase_if(keys, [&](const auto& entry) { return entry.first == key; });
}

TinyTensor& TinyModel::tensor(const std::string& name) {
    for (TinyTensor& t : tensors)
        if (t.name == name) return t;
    throw std::logic_error("no tensor " + name);
}

bool TinyModel::contains(const std::string& name) const {
    return std::any_of(tensors.begin(), tensors.end(), [&](const TinyTensor& t) { return t.name == name; });
}

void TinyModel::drop_tensor(const std::string& name) {
    std::erase_if(tensors, [&](const TinyTensor& t) { return t.name == name; });
}

void TinyModel::drop_tensors_of_block(int block) {
    const std::string prefix = "blk." + std::to_string(block) + ".";
    std::erase_if(tensors, [&](const TinyTensor& t) { return t.name.starts_with(prefix); });
}

void TinyModel::put(const std::string& name, std::vector<std::int64_t> ne) {
    drop_tensor(name);
    tensors.push_back(make_tensor(name, std::move(ne), WeightType::f32));
}

GgufWriter TinyModel::writer() const {
    GgufWriter writer;
    for (const auto& [key, value] : keys) writer.kv(key, value);
    for (const TinyTensor& t : tensors)
        writer.tensor(t.name, static_cast<std::uint32_t>(t.type), t.ne, t.bytes);
    return writer;
}

std::shared_ptr<const model::GgufFile> TinyModel::open() const {
    const TempDir dir;  // the mapping outlives the file's name
    writer().write_file(dir.file("tiny.gguf"));
    auto file = model::GgufFile::open(dir.file("tiny.gguf"));
    if (!file) throw std::runtime_error(file.error().to_string());
    return std::move(*file);
}

TinyModel tiny_model(const TinyShape& shape) {
    return Builder(shape).build();
}

std::vector<std::int32_t> golden_tokens() {
    return {156, 116, 25, 118, 35, 185, 249, 170, 90, 49, 12, 207, 138, 27, 135, 128};
}

std::vector<std::int32_t> random_tokens(int n, int n_vocab, std::uint64_t seed) {
    std::vector<std::int32_t> tokens;
    for (int i = 0; i < n; ++i)
        tokens.push_back(static_cast<std::int32_t>(splitmix(seed * 1000003 + static_cast<std::uint64_t>(i)) %
                                                   static_cast<std::uint64_t>(n_vocab)));
    return tokens;
}

std::vector<TinyShape> all_tiny_shapes() {
    std::vector<TinyShape> shapes(1);
    {
        TinyShape s;
        s.label = "three_k_heads_six_v_heads_conv3_interval2";
        s.n_embd = 48, s.n_vocab = 97, s.interval = 2, s.n_head = 6, s.n_head_kv = 3, s.head_dim = 16,
        s.rope_dim = 8;
        s.sections = {2, 1, 1, 0}, s.d_conv = 3, s.gdn_head_dim = 8, s.gdn_n_head_k = 3, s.gdn_n_head_v = 6;
        s.n_expert = 5, s.n_expert_used = 3, s.n_ff_exp = 24, s.n_ff_shexp = 40, s.has_nextn = false;
        shapes.push_back(s);
    }
    {
        TinyShape s;
        s.label = "equal_heads_one_kv_head_conv2_interval3_fused_tied";
        s.n_embd = 40, s.n_vocab = 51, s.n_layer = 6, s.interval = 3, s.n_head = 5, s.n_head_kv = 1,
        s.head_dim = 12;
        s.rope_dim = 12, s.sections = {2, 2, 2, 0}, s.freq_base = 10000, s.d_conv = 2, s.gdn_head_dim = 10;
        s.gdn_n_head_k = 3, s.gdn_n_head_v = 3, s.n_expert = 7, s.n_expert_used = 1, s.n_ff_exp = 20,
        s.n_ff_shexp = 8;
        s.has_nextn = false, s.is_tied = true, s.is_fused = true;
        shapes.push_back(s);
    }
    {
        TinyShape s;
        s.label = "quantised_mix_fused";
        s.is_fused = true;
        s.types = {
            {"ffn_gate_up_exps.weight", WeightType::q8_0}, {"ffn_down_exps.weight", WeightType::q4_0},
            {"ffn_gate_inp.weight", WeightType::bf16},     {"ffn_gate_inp_shexp.weight", WeightType::f16},
            {"token_embd.weight", WeightType::q8_0},       {"attn_qkv.weight", WeightType::q4_0},
            {"ssm_alpha.weight", WeightType::bf16},        {"attn_norm.weight", WeightType::f16}};
        shapes.push_back(s);
    }
    {
        TinyShape s;
        s.label = "quantised_mix_separate";
        s.types = {
            {"ffn_gate_exps.weight", WeightType::q4_0}, {"ffn_up_exps.weight", WeightType::q8_0},
            {"ffn_down_exps.weight", WeightType::f16},  {"output.weight", WeightType::bf16},
            {"attn_q.weight", WeightType::q8_0},        {"ffn_gate_inp_shexp.weight", WeightType::bf16}};
        s.n_expert = 9, s.n_expert_used = 4;
        shapes.push_back(s);
    }
    {
        TinyShape s;
        s.label = "listed_layers_uncovered_rope_sections_scaled";
        s.n_layer = 5, s.recurrent_layers = {0, 1, 0, 1, 1}, s.sections = {2, 2, 1, 3}, s.rope_factor = 2.5;
        s.freq_base = 500, s.has_nextn = false, s.gdn_n_head_k = 2, s.gdn_n_head_v = 8;
        shapes.push_back(s);
    }
    {
        TinyShape s;
        s.label = "attention_only_every_key_value_head_own";
        s.n_layer = 2, s.interval = 1, s.n_head = 3, s.n_head_kv = 3, s.head_dim = 6, s.rope_dim = 2,
        s.sections = {1, 0, 0, 0};
        s.has_nextn = false;
        shapes.push_back(s);
    }
    {
        TinyShape s;
        s.label = "gdn_only_all_experts_used";
        s.n_layer = 3, s.interval = 8, s.n_expert = 3, s.n_expert_used = 3, s.has_nextn = false;
        shapes.push_back(s);
    }
    return shapes;
}

}  // namespace pantheon::test

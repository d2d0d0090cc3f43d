#include "model/qwen35moe/config.h"

#include <algorithm>
#include <cmath>

#include "model/qwen35moe/key_reader.h"

namespace pantheon::model {
namespace {

// Far above every published model; what a hostile file may make us compute sizes from.
constexpr std::int64_t kMaxBlocks = 512;
constexpr std::int64_t kMaxExperts = 512;
constexpr std::int64_t kMaxHeads = 1024;
constexpr std::int64_t kMaxHeadDim = 4096;
constexpr std::int64_t kMaxWidth = 1 << 20;  // of n_embd and the expert widths
constexpr std::int64_t kMaxContext = std::int64_t{1} << 30;
constexpr std::int64_t kMaxConvTaps = 32;

std::string nextn_probe(std::int64_t block) {
    return "blk." + std::to_string(block) + ".nextn.eh_proj.weight";
}
std::string norm_probe(std::int64_t block) {
    return "blk." + std::to_string(block) + ".attn_norm.weight";
}

/// Finds out how many blocks form the trunk. Neither the metadata nor the tensors can be trusted alone: there
/// are files that promise a nextn block and lack it, that hold one unannounced, and that do not count it as a
/// block.
void read_blocks(KeyReader& keys, const HasTensor& has_tensor, ModelConfig& config) {
    const std::int64_t n_block = keys.required_int("block_count", 1, kMaxBlocks);
    const std::int64_t n_nextn = keys.int_or("nextn_predict_layers", 0, 0, kMaxBlocks);
    if (keys.has_failed()) return;
    if (n_nextn >= n_block)
        return keys.refuse(
            "nextn_predict_layers",
            std::to_string(n_nextn) + " of " + std::to_string(n_block) + " blocks leave no layer to run");

    const auto use = [&](std::int64_t n_layer, NextnInfo::State state) {
        config.n_layer = static_cast<int>(n_layer);
        config.nextn = {state, static_cast<int>(n_nextn), static_cast<int>(n_layer)};
    };
    if (n_nextn > 0 && has_tensor(nextn_probe(n_block - n_nextn)))
        return use(n_block - n_nextn, NextnInfo::State::present);
    if (n_nextn == 0 && n_block > 1 && has_tensor(nextn_probe(n_block - 1)))
        return use(n_block - 1, NextnInfo::State::present);
    // Not counted as a block: everything below it is trunk.
    if (has_tensor(nextn_probe(n_block)) && has_tensor(norm_probe(n_block - 1)))
        return use(n_block, NextnInfo::State::present);
    if (n_nextn > 0) return use(n_block - n_nextn, NextnInfo::State::promised_absent);
    use(n_block, NextnInfo::State::none);
}

void read_mixers(KeyReader& keys, ModelConfig& config) {
    const std::int64_t interval = keys.int_or("full_attention_interval", 4, 1, kMaxBlocks);
    const auto is_recurrent = keys.optional_ints("attention.recurrent_layers");
    if (keys.has_failed()) return;
    const std::size_t n_layer = static_cast<std::size_t>(config.n_layer);
    config.mixer.resize(n_layer);
    if (!is_recurrent) {
        for (std::size_t i = 0; i < n_layer; ++i)
            config.mixer[i] =
                static_cast<std::int64_t>(i + 1) % interval == 0 ? MixerKind::attention : MixerKind::gdn;
        return;
    }
    const std::size_t n_block = static_cast<std::size_t>(keys.required_int("block_count", 1, kMaxBlocks));
    if (is_recurrent->size() != n_layer && is_recurrent->size() != n_block)
        return keys.refuse(
            "attention.recurrent_layers",
            std::to_string(is_recurrent->size()) + " entries for " + std::to_string(n_layer) + " layers");
    for (std::size_t i = 0; i < n_layer; ++i) {
        const std::int64_t flag = (*is_recurrent)[i];
        if (flag != 0 && flag != 1)
            return keys.refuse("attention.recurrent_layers",
                               "entry " + std::to_string(i) + " is neither 0 nor 1");
        config.mixer[i] = flag == 1 ? MixerKind::gdn : MixerKind::attention;
    }
}

void read_attention(KeyReader& keys, ModelConfig& config) {
    const std::int64_t n_head = keys.int_or_largest("attention.head_count", 0, 0, kMaxHeads);
    if (keys.has_failed()) return;
    if (n_head == 0) return keys.refuse("attention.head_count", "missing or 0");
    const std::int64_t n_head_kv = keys.int_or_largest("attention.head_count_kv", n_head, 1, kMaxHeads);
    // 2048 / 16 is not the 256 of the published models: the default is for files that need no key.
    const std::int64_t even_split = std::max<std::int64_t>(config.n_embd / n_head, 1);
    const std::int64_t head_dim = keys.int_or("attention.key_length", even_split, 1, kMaxHeadDim);
    const std::int64_t value_dim = keys.int_or("attention.value_length", even_split, 1, kMaxHeadDim);
    if (keys.has_failed()) return;
    if (n_head % n_head_kv != 0)
        return keys.refuse("attention.head_count_kv", std::to_string(n_head_kv) + " does not divide the " +
                                                          std::to_string(n_head) + " query heads");
    if (value_dim != head_dim)
        return keys.fail(
            Code::unimplemented, "attention.value_length",
            std::to_string(value_dim) + " differs from the key length " + std::to_string(head_dim));
    config.n_head = static_cast<int>(n_head);
    config.n_head_kv = static_cast<int>(n_head_kv);
    config.head_dim = static_cast<int>(head_dim);
}

void read_rope_sections(KeyReader& keys, ModelConfig& config) {
    // The last two are what other exporters write.
    for (const std::string_view key : {"rope.dimension_sections", "rope.mrope_section", "mrope_sections"}) {
        const auto sections = keys.optional_ints(key);
        if (keys.has_failed()) return;
        if (!sections) continue;
        if (sections->size() != 3 && sections->size() != 4)
            return keys.refuse(key, std::to_string(sections->size()) + " entries, want 3 or 4");
        int sum = 0;
        for (std::size_t i = 0; i < sections->size(); ++i) {
            const std::int64_t n_pairs = (*sections)[i];
            if (n_pairs < 0 || n_pairs > kMaxHeadDim)
                return keys.refuse(key, std::to_string(n_pairs) + " is no count of pairs");
            config.rope_sections[i] = static_cast<int>(n_pairs);  // a fourth that is missing is 0
            sum += static_cast<int>(n_pairs);
        }
        if (sum == 0) return keys.refuse(key, "all sections are empty");
        return;
    }
    keys.refuse("rope.dimension_sections", "missing");
}

void read_rope(KeyReader& keys, ModelConfig& config) {
    const std::int64_t rope_dim = keys.int_or("rope.dimension_count", config.head_dim, 1, kMaxHeadDim);
    config.rope_freq_base = keys.float_or("rope.freq_base", 10000.0);
    const std::string scaling = keys.string_or("rope.scaling.type", "linear");
    const double factor = keys.float_or("rope.scaling.factor", 1.0);
    const bool is_interleaved = keys.optional_bool("rope.mrope_interleaved").value_or(true);
    if (keys.has_failed()) return;
    if (rope_dim % 2 != 0 || rope_dim > config.head_dim)
        return keys.refuse("rope.dimension_count", std::to_string(rope_dim) + " is odd or above the head's " +
                                                       std::to_string(config.head_dim));
    if (!std::isfinite(config.rope_freq_base) || config.rope_freq_base <= 0)
        return keys.refuse("rope.freq_base", "not a positive number");
    if (!std::isfinite(factor) || factor < 0)
        return keys.refuse("rope.scaling.factor", "not a positive number");
    if (scaling != "linear" && scaling != "none")
        return keys.fail(Code::unimplemented, "rope.scaling.type", "\"" + scaling + "\" is not supported");
    if (!is_interleaved)
        return keys.fail(Code::unimplemented, "rope.mrope_interleaved",
                         "only interleaved sections are supported");
    config.rope_dim = static_cast<int>(rope_dim);
    config.rope_freq_scale = scaling == "none" || factor == 0 ? 1.0 : 1.0 / factor;
    read_rope_sections(keys, config);
}

void read_gdn(KeyReader& keys, ModelConfig& config) {
    config.gdn_d_conv = static_cast<int>(keys.required_int("ssm.conv_kernel", 2, kMaxConvTaps));
    config.gdn_head_dim = static_cast<int>(keys.required_int("ssm.state_size", 1, kMaxHeadDim));
    config.gdn_n_head_k = static_cast<int>(keys.required_int("ssm.group_count", 1, kMaxHeads));
    config.gdn_n_head_v = static_cast<int>(keys.required_int("ssm.time_step_rank", 1, kMaxHeads));
    const std::int64_t d_inner = keys.required_int("ssm.inner_size", 1, kMaxHeads * kMaxHeadDim);
    const bool is_tiled = keys.optional_bool("ssm.v_head_reordered").value_or(true);
    if (keys.has_failed()) return;
    if (config.gdn_n_head_v % config.gdn_n_head_k != 0)
        return keys.refuse("ssm.time_step_rank", std::to_string(config.gdn_n_head_v) +
                                                     " is no multiple of the " +
                                                     std::to_string(config.gdn_n_head_k) + " groups");
    if (d_inner != config.gdn_d_inner())
        return keys.refuse("ssm.inner_size", std::to_string(d_inner) +
                                                 ", want state_size · time_step_rank = " +
                                                 std::to_string(config.gdn_d_inner()));
    if (!is_tiled && config.gdn_n_head_v != config.gdn_n_head_k)
        keys.fail(Code::unimplemented, "ssm.v_head_reordered", "V heads in grouped order are not supported");
}

void read_experts(KeyReader& keys, ModelConfig& config) {
    const std::int64_t n_ff = keys.int_or_largest("feed_forward_length", 0, 0, kMaxWidth);
    const std::int64_t n_expert = keys.int_or("expert_count", 0, 0, kMaxExperts);
    const std::int64_t n_used = keys.int_or("expert_used_count", 0, 0, kMaxExperts);
    if (keys.has_failed()) return;
    if (n_expert == 0) return keys.refuse("expert_count", "missing or 0");
    if (n_used == 0) return keys.refuse("expert_used_count", "missing or 0");
    if (n_used > n_expert)
        return keys.refuse("expert_used_count",
                           std::to_string(n_used) + " of " + std::to_string(n_expert) + " experts");
    const std::int64_t n_ff_exp = keys.int_or("expert_feed_forward_length", n_ff / n_used, 0, kMaxWidth);
    const std::int64_t n_ff_shexp = keys.int_or("expert_shared_feed_forward_length", n_ff, 0, kMaxWidth);
    const std::int64_t n_group = keys.int_or("expert_group_count", 0, 0, kMaxExperts);
    const std::int64_t n_group_used = keys.int_or("expert_group_used_count", 0, 0, kMaxExperts);
    if (keys.has_failed()) return;
    if (n_ff_exp == 0) return keys.refuse("expert_feed_forward_length", "missing or 0");
    if (n_ff_shexp == 0) return keys.refuse("expert_shared_feed_forward_length", "missing or 0");
    if (n_group > 1 && n_group_used != n_group)
        return keys.fail(Code::unimplemented, "expert_group_count", "grouped routing is not supported");
    config.n_expert = static_cast<int>(n_expert);
    config.n_expert_used = static_cast<int>(n_used);
    config.n_ff_exp = static_cast<int>(n_ff_exp);
    config.n_ff_shexp = static_cast<int>(n_ff_shexp);
}

}  // namespace

std::string NextnInfo::describe() const {
    switch (state) {
        case State::none:
            return "no nextn block";
        case State::present:
            return "nextn block blk." + std::to_string(first_block) + " present, not run";
        case State::promised_absent:
            return "metadata promises " + std::to_string(n_promised) +
                   " nextn block(s), the file has none; running the trunk alone";
    }
    return {};
}

int ModelConfig::n_attention_layers() const {
    return static_cast<int>(std::count(mixer.begin(), mixer.end(), MixerKind::attention));
}

Result<ModelConfig> read_config(const GgufMetadata& metadata, const HasTensor& has_tensor) {
    KeyReader general(metadata, "general.");
    const std::string architecture = general.string_or("architecture", "");
    ModelConfig config;
    config.name = general.string_or("name", "");
    if (general.error()) return *general.error();
    if (architecture.empty()) return Error(Code::invalid_argument, "general.architecture: missing");
    if (architecture != kArchitecture)
        return Error(Code::unimplemented, "general.architecture: \"" + architecture +
                                              "\" is not supported, only \"" + std::string(kArchitecture) +
                                              "\" is");

    KeyReader keys(metadata, std::string(kArchitecture) + ".");
    read_blocks(keys, has_tensor, config);
    config.n_ctx_train = static_cast<int>(keys.required_int("context_length", 1, kMaxContext));
    config.n_embd = static_cast<int>(keys.required_int("embedding_length", 1, kMaxWidth));
    const double eps = keys.required_float("attention.layer_norm_rms_epsilon");
    config.rms_eps = static_cast<float>(eps);
    if (!std::isfinite(config.rms_eps) || config.rms_eps <= 0)
        keys.refuse("attention.layer_norm_rms_epsilon", "not a positive number");
    // Each part divides by what an earlier one has checked, so the first error ends the reading.
    using Part = void (*)(KeyReader&, ModelConfig&);
    for (const Part part : {read_mixers, read_attention, read_rope, read_gdn, read_experts})
        if (!keys.has_failed()) part(keys, config);
    if (keys.error()) return *keys.error();
    return config;
}

}  // namespace pantheon::model

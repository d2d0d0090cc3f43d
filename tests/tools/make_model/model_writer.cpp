#include "tests/tools/make_model/model_writer.h"

#include <algorithm>
#include <map>
#include <regex>
#include <sstream>
#include <stdexcept>

#include "tests/tools/make_model/vocabulary.h"

namespace pantheon::test {
namespace {

using Entries = std::vector<std::pair<std::string, GgufTyped>>;

// Our own text, in the shape of the published Qwen3.5 template: programs tell the family by `enable_thinking`
// and the `<function=` form of tool calls.
constexpr char kChatTemplate[] =
    "{%- for message in messages -%}\n"
    "{{- '<|im_start|>' + message.role + '\\n' + (message.content or '') | trim -}}\n"
    "{%- for call in message.tool_calls or [] -%}\n"
    "{{- '\\n<tool_call>\\n<function=' + call.function.name + '>\\n' -}}\n"
    "{%- for key, value in call.function.arguments.items() -%}\n"
    "{{- '<parameter=' + key + '>\\n' + value | string + '\\n</parameter>\\n' -}}\n"
    "{%- endfor -%}\n"
    "{{- '</function>\\n</tool_call>' -}}\n"
    "{%- endfor -%}\n"
    "{{- '<|im_end|>\\n' -}}\n"
    "{%- endfor -%}\n"
    "{%- if add_generation_prompt -%}\n"
    "{{- '<|im_start|>assistant\\n<think>\\n' -}}\n"
    "{%- if enable_thinking is defined and not enable_thinking -%}{{- '\\n</think>\\n\\n' -}}{%- endif -%}\n"
    "{%- endif -%}\n";

void add_model_keys(const ModelShape& s, Entries& entries) {
    auto u32 = [&](const char* key, int value) {
        entries.emplace_back("qwen35moe." + std::string(key),
                             GgufTyped::u32(static_cast<std::uint32_t>(value)));
    };
    auto f32 = [&](const char* key, double value) {
        entries.emplace_back("qwen35moe." + std::string(key), GgufTyped::f32(static_cast<float>(value)));
    };
    u32("block_count", s.block_count());
    u32("context_length", s.context_length);
    u32("embedding_length", s.n_embd);
    u32("attention.head_count", s.n_head);
    u32("attention.head_count_kv", s.n_head_kv);
    entries.emplace_back("qwen35moe.rope.dimension_sections", GgufTyped::i32s(s.sections()));
    f32("rope.freq_base", s.rope_base);
    f32("attention.layer_norm_rms_epsilon", s.eps);
    u32("expert_count", s.n_expert);
    u32("expert_used_count", s.n_expert_used);
    u32("attention.key_length", s.head_dim);
    u32("attention.value_length", s.head_dim);
    u32("expert_feed_forward_length", s.n_ff_exp);
    u32("expert_shared_feed_forward_length", s.n_ff_shexp);
    u32("ssm.conv_kernel", s.gdn_d_conv);
    u32("ssm.state_size", s.gdn_head_dim);
    u32("ssm.group_count", s.gdn_n_head_k);
    u32("ssm.time_step_rank", s.gdn_n_head_v);
    u32("ssm.inner_size", s.gdn_inner());
    u32("full_attention_interval", s.interval);
    u32("rope.dimension_count", s.rope_dim);
    if (s.nextn != Nextn::none) u32("nextn_predict_layers", 1);
}

void add_tokenizer_keys(const Vocabulary& v, Entries& entries) {
    entries.emplace_back("tokenizer.ggml.model", GgufTyped::string("gpt2"));
    entries.emplace_back("tokenizer.ggml.pre", GgufTyped::string("qwen35"));
    entries.emplace_back("tokenizer.ggml.tokens", GgufTyped::strings(v.tokens));
    entries.emplace_back("tokenizer.ggml.token_type", GgufTyped::i32s(v.types));
    entries.emplace_back("tokenizer.ggml.merges", GgufTyped::strings(v.merges));
    const std::pair<const char*, const char*> kIds[] = {
        {"eos", "<|im_end|>"}, {"padding", "<|endoftext|>"}, {"bos", "<|endoftext|>"}};
    for (const auto& [key, text] : kIds) {
        const std::int64_t id = v.find(text);
        if (id < 0) continue;
        entries.emplace_back("tokenizer.ggml." + std::string(key) + "_token_id",
                             GgufTyped::u32(static_cast<std::uint32_t>(id)));
    }
    entries.emplace_back("tokenizer.ggml.add_bos_token", GgufTyped::boolean(false));
    entries.emplace_back("tokenizer.chat_template", GgufTyped::string(kChatTemplate));
}

bool matches_any(const std::string& text, const std::vector<std::string>& patterns) {
    return std::any_of(patterns.begin(), patterns.end(),
                       [&](const std::string& p) { return std::regex_search(text, std::regex(p)); });
}

void apply_key_changes(const ModelSpec& spec, Entries& entries) {
    std::erase_if(entries, [&](const auto& e) { return matches_any(e.first, spec.drop_keys); });
    for (const auto& [key, value] : spec.set_keys) {
        const auto it =
            std::find_if(entries.begin(), entries.end(), [&](const auto& e) { return e.first == key; });
        if (it != entries.end()) {
            it->second = value;
        } else {
            entries.emplace_back(key, value);
        }
    }
}

std::string without_extension(const std::string& path) {
    constexpr std::string_view kExtension = ".gguf";
    return path.ends_with(kExtension) ? path.substr(0, path.size() - kExtension.size()) : path;
}

}  // namespace

WrittenModel write_model(const ModelSpec& spec, const std::string& path) {
    if (const std::string problem = spec.shape.problem(); !problem.empty())
        throw std::invalid_argument(problem);
    const auto n_vocab = static_cast<std::size_t>(spec.shape.n_vocab);
    const Vocabulary vocabulary = spec.tokenizer_json.empty()
                                      ? make_vocabulary(n_vocab)
                                      : read_tokenizer_json(spec.tokenizer_json, n_vocab);
    std::vector<PlannedTensor> tensors =
        plan_tensors(spec.shape, static_cast<std::int64_t>(vocabulary.tokens.size()));
    const TypeMix mix(spec.mix);
    const auto types = mix.choose(tensors, spec.shape, spec.type_overrides);
    const bool is_quantised =
        std::any_of(types.begin(), types.end(), [](const auto* type) { return type->block_elems > 1; });

    Entries entries;
    entries.emplace_back("general.architecture", GgufTyped::string("qwen35moe"));
    entries.emplace_back("general.type", GgufTyped::string("model"));
    entries.emplace_back("general.name", GgufTyped::string(spec.name));
    add_model_keys(spec.shape, entries);
    entries.emplace_back("general.file_type", GgufTyped::u32(mix.file_type()));
    if (is_quantised) entries.emplace_back("general.quantization_version", GgufTyped::u32(2));
    add_tokenizer_keys(vocabulary, entries);
    apply_key_changes(spec, entries);

    GgufWriter writer(spec.version, spec.alignment);
    for (auto& [key, value] : entries) writer.kv(key, std::move(value));
    WrittenModel written;
    std::map<std::int32_t, int> counts;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        if (matches_any(tensors[i].name, spec.drop_tensors)) continue;
        const kernels::WeightTypeInfo& type = *types[i];
        const auto n_bytes = static_cast<std::uint64_t>(kernels::row_bytes(type, tensors[i].n_elems()));
        writer.tensor(
            {tensors[i].name, static_cast<std::uint32_t>(type.id), tensors[i].ne, n_bytes,
             weight_data(tensors[i], static_cast<kernels::WeightType>(type.id), spec.shape, spec.weights),
             std::nullopt});
        ++written.n_tensors;
        written.data_bytes += n_bytes;
        ++counts[type.id];
    }
    for (const auto& [id, count] : counts) {
        if (!written.type_counts.empty()) written.type_counts += ", ";
        written.type_counts += std::to_string(count) + " " + std::string(kernels::weight_type_info(id)->name);
    }
    if (spec.n_files > 1) {
        written.paths = writer.write_split(without_extension(path), spec.n_files);
    } else {
        writer.write_file(path);
        written.paths = {path};
    }
    return written;
}

GgufTyped parse_typed_value(const std::string& text) {
    const std::size_t colon = text.find(':');
    const std::string type = text.substr(0, colon),
                      value = colon == std::string::npos ? "" : text.substr(colon + 1);
    const auto bad = [&] {
        return std::invalid_argument(
            "'" + text +
            "': want TYPE:VALUE with TYPE one of u8, i8, u16, i16, u32, i32, u64, i64, f32, "
            "f64, bool, string, strings, i32s, f32s (the last three separated by commas)");
    };
    if (colon == std::string::npos) throw bad();
    auto split = [&] {
        std::vector<std::string> parts;
        std::istringstream in(value);
        for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
        return parts;
    };
    try {
        if (type == "u8") return GgufTyped::u8(static_cast<std::uint8_t>(std::stoul(value)));
        if (type == "i8") return GgufTyped::i8(static_cast<std::int8_t>(std::stol(value)));
        if (type == "u16") return GgufTyped::u16(static_cast<std::uint16_t>(std::stoul(value)));
        if (type == "i16") return GgufTyped::i16(static_cast<std::int16_t>(std::stol(value)));
        if (type == "u32") return GgufTyped::u32(static_cast<std::uint32_t>(std::stoul(value)));
        if (type == "i32") return GgufTyped::i32(static_cast<std::int32_t>(std::stol(value)));
        if (type == "u64") return GgufTyped::u64(std::stoull(value));
        if (type == "i64") return GgufTyped::i64(std::stoll(value));
        if (type == "f32") return GgufTyped::f32(std::stof(value));
        if (type == "f64") return GgufTyped::f64(std::stod(value));
        if (type == "bool" && (value == "true" || value == "false"))
            return GgufTyped::boolean(value == "true");
        if (type == "string") return GgufTyped::string(value);
        if (type == "strings") return GgufTyped::strings(split());
        if (type == "i32s") {
            std::vector<std::int32_t> numbers;
            for (const std::string& part : split())
                numbers.push_back(static_cast<std::int32_t>(std::stol(part)));
            return GgufTyped::i32s(numbers);
        }
        if (type == "f32s") {
            std::vector<float> numbers;
            for (const std::string& part : split()) numbers.push_back(std::stof(part));
            return GgufTyped::f32s(numbers);
        }
    } catch (const std::exception&) {
        throw bad();
    }
    throw bad();
}

}  // namespace pantheon::test

#include "tests/tools/make_model/type_mix.h"

#include <stdexcept>

namespace pantheon::test {
namespace {

using kernels::WeightType;
using kernels::WeightTypeInfo;

struct FileType {
    WeightType type;
    std::uint32_t id;  // llama.cpp's name for "mostly this type"
};

constexpr FileType kFileTypes[] = {
    {WeightType::f32, 0},      {WeightType::f16, 1},     {WeightType::q4_0, 2},     {WeightType::q4_1, 3},
    {WeightType::q8_0, 7},     {WeightType::q5_0, 8},    {WeightType::q5_1, 9},     {WeightType::q2_k, 10},
    {WeightType::q3_k, 11},    {WeightType::q4_k, 14},   {WeightType::q5_k, 16},    {WeightType::q6_k, 18},
    {WeightType::iq2_xxs, 19}, {WeightType::iq2_xs, 20}, {WeightType::iq3_xxs, 23}, {WeightType::iq1_s, 24},
    {WeightType::iq4_nl, 25},  {WeightType::iq3_s, 26},  {WeightType::iq2_s, 28},   {WeightType::iq4_xs, 30},
    {WeightType::iq1_m, 31},   {WeightType::bf16, 32},   {WeightType::mxfp4, 38},
};

const WeightTypeInfo* info_of(WeightType type) {
    return kernels::weight_type_info(type);
}

WeightType fallback_of(WeightType type) {
    switch (type) {
        case WeightType::q2_k:
        case WeightType::q3_k:
            return WeightType::q4_0;
        case WeightType::q4_k:
            return WeightType::q5_0;
        case WeightType::q5_k:
            return WeightType::q5_1;
        case WeightType::q6_k:
            return WeightType::q8_0;
        default:
            return WeightType::iq4_nl;  // the IQ types
    }
}

const WeightTypeInfo* fitting(const WeightTypeInfo* type, std::int64_t n_in) {
    if (n_in % type->block_elems == 0) return type;
    if (type->block_elems == 256) type = info_of(fallback_of(static_cast<WeightType>(type->id)));
    return n_in % type->block_elems == 0 ? type : info_of(WeightType::f16);
}

/// "More bits" layers of the _M mixes: the first and last eighth, and every third between.
bool uses_more_bits(int i, int n) {
    return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2;
}

bool ends_with(std::string_view name, std::string_view ending) {
    return name.ends_with(ending);
}

int layer_of(std::string_view name) {
    int layer = 0;
    for (std::size_t i = 4; i < name.size() && name[i] != '.'; ++i) layer = layer * 10 + (name[i] - '0');
    return layer;
}

}  // namespace

TypeOverride parse_type_override(const std::string& text) {
    const std::size_t equals = text.rfind('=');
    if (equals == std::string::npos) throw std::invalid_argument("'" + text + "': want REGEX=TYPE");
    const WeightTypeInfo* type = kernels::weight_type_by_name(text.substr(equals + 1));
    if (!type || !type->is_supported)
        throw std::invalid_argument("'" + text.substr(equals + 1) + "': not a type that can be written");
    try {
        return {std::regex(text.substr(0, equals)), type};
    } catch (const std::regex_error& e) {
        throw std::invalid_argument("'" + text.substr(0, equals) + "': " + e.what());
    }
}

std::string TypeMix::names() {
    std::string text = "q4_k_m, q3_k_m, q8_0, mxfp4_moe";
    for (const FileType& f : kFileTypes) text += ", " + std::string(info_of(f.type)->name);
    return text;
}

TypeMix::TypeMix(std::string_view name) {
    struct Mix {
        std::string_view name;
        Kind kind;
        WeightType base;
        std::uint32_t file_type;
    };
    constexpr Mix kMixes[] = {
        {"q4_k_m", Kind::q4_k_m, WeightType::q4_k, 15},
        {"q3_k_m", Kind::q3_k_m, WeightType::q3_k, 12},
        {"mxfp4_moe", Kind::mxfp4_moe, WeightType::q8_0, 38},
    };
    for (const Mix& mix : kMixes) {
        if (mix.name != name) continue;
        kind_ = mix.kind;
        base_ = info_of(mix.base);
        file_type_ = mix.file_type;
        return;
    }
    base_ = kernels::weight_type_by_name(name);
    if (!base_ || !base_->is_supported)
        throw std::invalid_argument("'" + std::string(name) + "': not a type or mix; there are " + names());
    for (const FileType& f : kFileTypes)
        if (static_cast<std::int32_t>(f.type) == base_->id) file_type_ = f.id;
}

std::vector<const WeightTypeInfo*> TypeMix::choose(const std::vector<PlannedTensor>& tensors,
                                                   const ModelShape& shape,
                                                   const std::vector<TypeOverride>& overrides) const {
    const int n_layer = shape.n_written_blocks();
    int i_qkv = 0;  // attn_qkv and attn_v are one series, one tensor a layer
    auto mixed = [&](const PlannedTensor& t) -> WeightType {
        const auto base = static_cast<WeightType>(base_->id);
        if (kind_ == Kind::uniform) return base;
        if (kind_ == Kind::mxfp4_moe) return t.ne.size() == 3 ? WeightType::mxfp4 : base;
        if (t.name == "output.weight" || (shape.is_tied && t.name == "token_embd.weight"))
            return WeightType::q6_k;
        if (ends_with(t.name, "attn_qkv.weight") || ends_with(t.name, "attn_v.weight")) {
            const int i = i_qkv++;
            if (kind_ == Kind::q4_k_m) return uses_more_bits(i, n_layer) ? WeightType::q6_k : base;
            return i < 2 ? WeightType::q5_k : WeightType::q4_k;
        }
        if (t.name.find("ffn_down") != std::string::npos) {
            const int layer = layer_of(t.name);
            if (kind_ == Kind::q4_k_m) return uses_more_bits(layer, n_layer) ? WeightType::q6_k : base;
            return layer < n_layer / 16 ? WeightType::q5_k : WeightType::q4_k;
        }
        if (kind_ == Kind::q3_k_m && ends_with(t.name, "attn_output.weight")) return WeightType::q4_k;
        return base;
    };
    std::vector<const WeightTypeInfo*> types;
    for (const PlannedTensor& t : tensors) {
        const WeightTypeInfo* type = info_of(t.may_be_quantised ? mixed(t) : WeightType::f32);
        for (const TypeOverride& o : overrides) {
            if (!std::regex_search(t.name, o.pattern)) continue;
            type = o.type;
            break;
        }
        types.push_back(fitting(type, t.ne[0]));
    }
    return types;
}

}  // namespace pantheon::test

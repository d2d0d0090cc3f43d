#include "model/qwen35moe/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/model/qwen35moe/tiny_model.h"

namespace pantheon::test {
namespace {

using model::MixerKind;
using model::ModelConfig;
using model::NextnInfo;
using testing::HasSubstr;

std::string key(const std::string& name) {
    return name.starts_with("general.") ? name : "qwen35moe." + name;
}

Result<ModelConfig> read(const TinyModel& tiny) {
    const auto file = tiny.open();
    return read_config(file->metadata(),
                       [&](std::string_view name) { return file->find_tensor(name) != nullptr; });
}

/// A model without a nextn block whose metadata a case changes.
TinyModel plain() {
    static const TinyModel model = [] {
        TinyShape shape;
        shape.has_nextn = false;
        TinyModel tiny = tiny_model(shape);
        tiny.tensors.resize(1);  // metadata alone is read here
        return tiny;
    }();
    return model;
}

GgufTyped u32(std::uint32_t v) {
    return GgufTyped::u32(v);
}
GgufTyped i32s(std::vector<std::int32_t> v) {
    return GgufTyped::i32s(v);
}

TEST(ModelConfigTest, ReadsEveryKeyOfTheFixture) {
    const auto config = read(tiny_model());
    ASSERT_TRUE(config) << config.error().to_string();
    EXPECT_EQ(config->name, "fixture");
    EXPECT_EQ(config->n_layer, 4);
    EXPECT_EQ(config->n_ctx_train, 4096);
    EXPECT_EQ(config->n_embd, 64);
    EXPECT_EQ(config->rms_eps, 1e-6f);
    EXPECT_EQ(config->mixer,
              (std::vector{MixerKind::gdn, MixerKind::gdn, MixerKind::gdn, MixerKind::attention}));
    EXPECT_EQ(config->n_attention_layers(), 1);
    EXPECT_EQ(config->n_gdn_layers(), 3);
    EXPECT_EQ(config->n_head, 4);
    EXPECT_EQ(config->n_head_kv, 2);
    EXPECT_EQ(config->head_dim, 32);
    EXPECT_EQ(config->rope_dim, 16);
    EXPECT_EQ(config->rope_sections, (std::array<int, 4>{3, 3, 2, 0}));
    EXPECT_EQ(config->rope_freq_base, 1e7);
    EXPECT_EQ(config->rope_freq_scale, 1.0);
    EXPECT_EQ(config->gdn_d_conv, 4);
    EXPECT_EQ(config->gdn_head_dim, 16);
    EXPECT_EQ(config->gdn_n_head_k, 2);
    EXPECT_EQ(config->gdn_n_head_v, 4);
    EXPECT_EQ(config->gdn_conv_dim(), 128);
    EXPECT_EQ(config->n_expert, 8);
    EXPECT_EQ(config->n_expert_used, 2);
    EXPECT_EQ(config->n_ff_exp, 32);
    EXPECT_EQ(config->n_ff_shexp, 32);
}

TEST(ModelConfigTest, EveryAbsentKeyHasItsDefault) {
    const struct {
        const char* absent;
        std::vector<std::pair<const char*, GgufTyped>> set;
        std::function<bool(const ModelConfig&)> is_default;
    } kCases[] = {
        {"general.name", {}, [](const ModelConfig& c) { return c.name.empty(); }},
        {"nextn_predict_layers", {}, [](const ModelConfig& c) { return c.n_layer == 4; }},
        {"attention.head_count_kv", {}, [](const ModelConfig& c) { return c.n_head_kv == 4; }},
        {"attention.key_length",
         {{"attention.value_length", u32(16)}},
         [](const ModelConfig& c) { return c.head_dim == 16; }},  // 64 / 4
        {"attention.value_length",
         {{"attention.key_length", u32(16)}},
         [](const ModelConfig& c) { return c.head_dim == 16; }},
        {"rope.dimension_count", {}, [](const ModelConfig& c) { return c.rope_dim == 32; }},
        {"rope.freq_base", {}, [](const ModelConfig& c) { return c.rope_freq_base == 10000; }},
        {"rope.scaling.type",
         {{"rope.scaling.factor", GgufTyped::f32(4)}},
         [](const ModelConfig& c) { return c.rope_freq_scale == 0.25; }},
        {"rope.scaling.factor",
         {{"rope.scaling.type", GgufTyped::string("linear")}},
         [](const ModelConfig& c) { return c.rope_freq_scale == 1; }},
        {"full_attention_interval",
         {},
         [](const ModelConfig& c) { return c.mixer[3] == MixerKind::attention; }},
        {"expert_feed_forward_length",
         {{"feed_forward_length", u32(96)}},
         [](const ModelConfig& c) { return c.n_ff_exp == 48; }},  // 96 / 2 used
        {"expert_shared_feed_forward_length",
         {{"feed_forward_length", u32(96)}},
         [](const ModelConfig& c) { return c.n_ff_shexp == 96; }},
    };
    for (const auto& c : kCases) {
        SCOPED_TRACE(c.absent);
        TinyModel tiny = plain();
        for (const auto& [name, value] : c.set) tiny.set(key(name), value);
        if (std::string(c.absent) == "rope.dimension_count")
            tiny.set(key("rope.dimension_sections"), i32s({6, 6, 4, 0}));
        tiny.drop_key(key(c.absent));
        const auto config = read(tiny);
        ASSERT_TRUE(config) << config.error().to_string();
        EXPECT_TRUE(c.is_default(*config));
    }
}

TEST(ModelConfigTest, RequiredKeysAreNamedWhenTheyAreMissing) {
    for (const char* name :
         {"general.architecture", "block_count", "context_length", "embedding_length", "attention.head_count",
          "attention.layer_norm_rms_epsilon", "rope.dimension_sections", "ssm.conv_kernel", "ssm.state_size",
          "ssm.group_count", "ssm.time_step_rank", "ssm.inner_size", "expert_count", "expert_used_count",
          "expert_feed_forward_length", "expert_shared_feed_forward_length"}) {
        TinyModel tiny = plain();
        tiny.drop_key(key(name));
        const auto config = read(tiny);
        ASSERT_FALSE(config) << name;
        EXPECT_EQ(config.error().code(), Code::invalid_argument) << name;
        EXPECT_THAT(config.error().message(), HasSubstr(key(name) + ": missing"));
    }
}

TEST(ModelConfigTest, RefusesWhatCannotBeRightAndNamesTheKey) {
    const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
    const struct {
        const char* name;
        GgufTyped value;
        Code code = Code::invalid_argument;
    } kCases[] = {
        {"general.architecture", GgufTyped::string("qwen3moe"), Code::unimplemented},
        {"general.architecture", GgufTyped::string("qwen35"), Code::unimplemented},
        {"general.architecture", u32(1)},
        {"block_count", u32(0)},
        {"block_count", u32(513)},
        {"block_count", GgufTyped::string("4")},
        {"nextn_predict_layers", u32(4)},
        {"context_length", u32(0)},
        {"embedding_length", u32(0)},
        {"embedding_length", GgufTyped::u64(1ull << 40)},
        {"attention.layer_norm_rms_epsilon", GgufTyped::f32(0)},
        {"attention.layer_norm_rms_epsilon", GgufTyped::f32(-1e-6f)},
        {"attention.layer_norm_rms_epsilon", GgufTyped::f32(nan)},
        {"attention.layer_norm_rms_epsilon", GgufTyped::f32(inf)},
        {"full_attention_interval", u32(0)},
        {"attention.recurrent_layers", i32s({1, 1, 0})},
        {"attention.recurrent_layers", i32s({1, 1, 2, 0})},
        {"attention.head_count", u32(0)},
        {"attention.head_count", i32s({4, 4, 2, 4}), Code::unimplemented},
        {"attention.head_count_kv", u32(0)},
        {"attention.head_count_kv", u32(3)},
        {"attention.key_length", u32(0)},
        {"attention.value_length", u32(16), Code::unimplemented},
        {"rope.dimension_count", u32(15)},
        {"rope.dimension_count", u32(34)},
        {"rope.dimension_count", u32(0)},
        {"rope.dimension_sections", i32s({3, 3})},
        {"rope.dimension_sections", i32s({3, 3, 2, 0, 0})},
        {"rope.dimension_sections", i32s({3, -3, 2, 0})},
        {"rope.dimension_sections", i32s({0, 0, 0, 0})},
        {"rope.freq_base", GgufTyped::f32(0)},
        {"rope.freq_base", GgufTyped::f32(nan)},
        {"rope.scaling.type", GgufTyped::string("yarn"), Code::unimplemented},
        {"rope.scaling.factor", GgufTyped::f32(-2)},
        {"rope.scaling.factor", GgufTyped::f32(inf)},
        {"rope.mrope_interleaved", GgufTyped::boolean(false), Code::unimplemented},
        {"ssm.conv_kernel", u32(1)},
        {"ssm.conv_kernel", u32(1000)},
        {"ssm.state_size", u32(0)},
        {"ssm.group_count", u32(0)},
        {"ssm.time_step_rank", u32(0)},
        {"ssm.time_step_rank", u32(3)},
        {"ssm.inner_size", u32(65)},
        {"ssm.v_head_reordered", GgufTyped::boolean(false), Code::unimplemented},
        {"expert_count", u32(0)},
        {"expert_count", u32(513)},
        {"expert_used_count", u32(0)},
        {"expert_used_count", u32(9)},
        {"expert_feed_forward_length", u32(0)},
        {"expert_shared_feed_forward_length", u32(0)},
        {"expert_group_count", u32(4), Code::unimplemented},
    };
    for (const auto& c : kCases) {
        TinyModel tiny = plain();
        tiny.set(key(c.name), c.value);
        const auto config = read(tiny);
        ASSERT_FALSE(config) << c.name;
        EXPECT_EQ(config.error().code(), c.code) << config.error().to_string();
        EXPECT_THAT(config.error().message(), HasSubstr(key(c.name)));
    }
}

TEST(ModelConfigTest, AcceptsWhatOtherExportersWrite) {
    const struct {
        const char* what;
        const char* name;
        GgufTyped value;
        std::function<bool(const ModelConfig&)> is_right;
    } kCases[] = {
        {"three sections", "rope.dimension_sections", i32s({3, 3, 2}),
         [](const ModelConfig& c) {
             return c.rope_sections == std::array<int, 4>{3, 3, 2, 0};
         }},
        {"KV heads per layer, 0 on GDN layers", "attention.head_count_kv", i32s({0, 0, 0, 2}),
         [](const ModelConfig& c) { return c.n_head_kv == 2; }},
        {"heads per layer", "attention.head_count", i32s({4, 4, 4, 4}),
         [](const ModelConfig& c) { return c.n_head == 4; }},
        {"u64", "embedding_length", GgufTyped::u64(64), [](const ModelConfig& c) { return c.n_embd == 64; }},
        {"i8", "block_count", GgufTyped::i8(4), [](const ModelConfig& c) { return c.n_layer == 4; }},
        {"f64", "rope.freq_base", GgufTyped::f64(5e6),
         [](const ModelConfig& c) { return c.rope_freq_base == 5e6; }},
        {"listed layers", "attention.recurrent_layers", i32s({0, 1, 1, 0}),
         [](const ModelConfig& c) {
             return c.mixer ==
                    std::vector{MixerKind::attention, MixerKind::gdn, MixerKind::gdn, MixerKind::attention};
         }},
        {"listed layers as bools", "attention.recurrent_layers",
         GgufTyped::array(7, 4, std::string("\1\0\1\1", 4)),
         [](const ModelConfig& c) {
             return c.mixer ==
                    std::vector{MixerKind::gdn, MixerKind::attention, MixerKind::gdn, MixerKind::gdn};
         }},
        {"scaling none", "rope.scaling.type", GgufTyped::string("none"),
         [](const ModelConfig& c) { return c.rope_freq_scale == 1; }},
        {"tiled V heads", "ssm.v_head_reordered", GgufTyped::boolean(true),
         [](const ModelConfig& c) { return c.gdn_n_head_v == 4; }},
        {"a weight scale, which this architecture ignores", "expert_weights_scale", GgufTyped::f32(2.5f),
         [](const ModelConfig&) { return true; }},
        {"interval 2", "full_attention_interval", u32(2),
         [](const ModelConfig& c) {
             return c.n_attention_layers() == 2 && c.mixer[1] == MixerKind::attention;
         }},
    };
    for (const auto& c : kCases) {
        SCOPED_TRACE(c.what);
        TinyModel tiny = plain();
        tiny.set(key(c.name), c.value);
        const auto config = read(tiny);
        ASSERT_TRUE(config) << config.error().to_string();
        EXPECT_TRUE(c.is_right(*config));
    }
}

TEST(ModelConfigTest, RecurrentLayersMayCountTheNextnBlock) {
    TinyModel tiny = tiny_model();
    for (const auto& flags :
         {std::vector<std::int32_t>{1, 1, 1, 0, 0}, std::vector<std::int32_t>{1, 1, 1, 0}}) {
        tiny.set(key("attention.recurrent_layers"), i32s(flags));
        const auto config = read(tiny);
        ASSERT_TRUE(config) << config.error().to_string();
        EXPECT_EQ(config->n_attention_layers(), 1);
    }
}

TEST(ModelConfigTest, SectionsMayStandUnderAnotherExportersKey) {
    for (const char* name : {"rope.mrope_section", "mrope_sections"}) {
        TinyModel tiny = plain();
        tiny.drop_key(key("rope.dimension_sections"));
        tiny.set(key(name), i32s({3, 3, 2}));
        const auto config = read(tiny);
        ASSERT_TRUE(config) << config.error().to_string();
        EXPECT_EQ(config->rope_sections, (std::array<int, 4>{3, 3, 2, 0}));
    }
}

TEST(ModelConfigTest, FindsTheTrunkWhateverIsSaidAboutTheNextnBlock) {
    const struct {
        const char* what;
        int block_count, n_nextn;
        bool has_tensors;
        int n_layer;
        NextnInfo::State state;
        const char* line;
    } kCases[] = {
        {"no block", 4, 0, false, 4, NextnInfo::State::none, "no nextn block"},
        {"counted and there", 5, 1, true, 4, NextnInfo::State::present, "nextn block blk.4 present, not run"},
        {"promised, not there", 5, 1, false, 4, NextnInfo::State::promised_absent,
         "metadata promises 1 nextn block(s), the file has none; running the trunk alone"},
        {"there, not announced", 5, 0, true, 4, NextnInfo::State::present,
         "nextn block blk.4 present, not run"},
        {"there, announced, not counted as a block", 4, 1, true, 4, NextnInfo::State::present,
         "nextn block blk.4 present, not run"},
        {"there, neither announced nor counted", 4, 0, true, 4, NextnInfo::State::present,
         "nextn block blk.4 present, not run"},
        {"two promised, the first there", 6, 2, true, 4, NextnInfo::State::present,
         "nextn block blk.4 present, not run"},
    };
    for (const auto& c : kCases) {
        SCOPED_TRACE(c.what);
        TinyModel tiny = tiny_model();
        if (!c.has_tensors) tiny.drop_tensors_of_block(4);
        tiny.set(key("block_count"), u32(static_cast<std::uint32_t>(c.block_count)));
        tiny.set(key("nextn_predict_layers"), u32(static_cast<std::uint32_t>(c.n_nextn)));
        const auto config = read(tiny);
        ASSERT_TRUE(config) << config.error().to_string();
        EXPECT_EQ(config->n_layer, c.n_layer);
        EXPECT_EQ(config->mixer.size(), static_cast<std::size_t>(c.n_layer));
        EXPECT_EQ(config->nextn.state, c.state);
        EXPECT_EQ(config->nextn.describe(), c.line);
    }
}

}  // namespace
}  // namespace pantheon::test

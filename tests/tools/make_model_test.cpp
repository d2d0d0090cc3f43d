#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <numeric>
#include <set>

#include "kernels/quant/dequantize.h"
#include "model/gguf/gguf_file.h"
#include "tests/support/temp_dir.h"
#include "tests/tools/make_model/expand_f32.h"
#include "tests/tools/make_model/model_writer.h"
#include "tests/tools/make_model/random_bits.h"
#include "tests/tools/make_model/tensor_plan.h"
#include "tests/tools/make_model/vocabulary.h"
#include "tests/tools/make_model/weight_source.h"

namespace pantheon::test {
namespace {

using kernels::WeightType;
using model::GgufFile;
using model::GgufTensor;
using testing::ElementsAre;

ModelSpec spec_of(const char* preset) {
    const Preset* p = find_preset(preset);
    ModelSpec spec;
    spec.shape = p->shape;
    spec.mix = p->mix;
    if (p->has_fixture_weights) spec.weights.kind = WeightKind::fixture;
    return spec;
}

std::shared_ptr<const GgufFile> written(const TempDir& dir, const ModelSpec& spec,
                                        const char* name = "m.gguf") {
    const WrittenModel model = write_model(spec, dir.file(name));
    auto file = GgufFile::open(model.paths.back());
    EXPECT_TRUE(file) << file.error().to_string();
    return file ? *file : nullptr;
}

std::vector<float> values(const GgufFile& file, const std::string& name) {
    const GgufTensor* t = file.find_tensor(name);
    if (!t) throw std::runtime_error("no tensor " + name);
    const std::int64_t n = t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];
    std::vector<float> y(static_cast<std::size_t>(n));
    kernels::dequantize_row(static_cast<WeightType>(t->type), file.bytes(*t).data(), y.data(), n);
    return y;
}

std::string raw(const GgufFile& file, const std::string& name) {
    const auto bytes = file.bytes(*file.find_tensor(name));
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class Collected : public ByteSink {
  public:
    void write(const void* data, std::size_t n) override {
        const auto* p = static_cast<const std::byte*>(data);
        bytes.insert(bytes.end(), p, p + n);
    }
    std::vector<std::byte> bytes;
};

TEST(MakeModelTest, FixtureHasItsCheckValues) {
    EXPECT_EQ(fnv1a_64("token_embd.weight"), 0x2d85b88e70e67727u);
    const TempDir dir;
    const auto file = written(dir, spec_of("fixture"));
    const auto starts_with = [&](const char* name, std::vector<float> want) {
        const std::vector<float> y = values(*file, name);
        for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(y[i], want[i], 1e-8) << name;
    };
    starts_with("token_embd.weight", {0.19982541f, 0.02065480f, 0.35309696f});
    starts_with("blk.0.ssm_a", {-0.45788008f, -0.64942044f, -0.54892731f});
    starts_with("blk.1.ffn_gate_exps.weight", {-0.08936375f, 0.17241800f, 0.11722606f});
    EXPECT_EQ(file->tensors().size(), 96u);
    EXPECT_EQ(**file->metadata().get_int("qwen35moe.block_count", 0, 99), 5);
    EXPECT_EQ(**file->metadata().get_int("qwen35moe.nextn_predict_layers", 0, 99), 1);
    EXPECT_THAT(**file->metadata().get_int_array("qwen35moe.rope.dimension_sections"),
                ElementsAre(3, 3, 2, 0));
    EXPECT_EQ((*file->metadata().get_string_array("tokenizer.ggml.tokens"))->size(), 300u);
}

TEST(MakeModelTest, EveryTypeGivesFiniteWeightsOfTheWantedMagnitude) {
    constexpr std::int64_t kElems = 256 * 1024 + 256;  // more than one piece
    for (int id = 0; id < 64; ++id) {
        const kernels::WeightTypeInfo* info = kernels::weight_type_info(id);
        if (!info || !info->is_supported) continue;
        SCOPED_TRACE(info->name);
        for (const double amplitude : {0.5, 0.02}) {
            RandomBits random(1);
            Collected out;
            WeightSource(static_cast<WeightType>(id), {0, amplitude}).write(random, kElems, out);
            ASSERT_EQ(out.bytes.size(), static_cast<std::size_t>(kernels::row_bytes(*info, kElems)));
            std::vector<float> y(kElems);
            kernels::dequantize_row(static_cast<WeightType>(id), out.bytes.data(), y.data(), kElems);
            double sum = 0, squares = 0;
            for (const float v : y) {
                ASSERT_TRUE(std::isfinite(v));
                sum += v;
                squares += static_cast<double>(v) * v;
            }
            const double want = amplitude / std::sqrt(3.0), rms = std::sqrt(squares / kElems);
            // An MXFP4 scale is a power of two.
            const double tolerance = info->name == "MXFP4" ? 0.45 : 0.05;
            EXPECT_NEAR(rms, want, tolerance * want);
            EXPECT_LT(std::fabs(sum / kElems), 0.05 * want);
        }
    }
}

TEST(MakeModelTest, MixesAreThoseOfTheQuantiser) {
    const ModelShape shape = find_preset("real40")->shape;
    const auto plan = plan_tensors(shape, shape.n_vocab);
    EXPECT_EQ(plan.size(), 733u);
    auto types_of = [&](const char* mix) {
        std::map<std::string, std::string> types;
        const auto chosen = TypeMix(mix).choose(plan, shape, {});
        for (std::size_t i = 0; i < plan.size(); ++i) types[plan[i].name] = chosen[i]->name;
        return types;
    };
    auto count = [](const std::map<std::string, std::string>& types, const char* type) {
        return std::count_if(types.begin(), types.end(), [&](const auto& t) { return t.second == type; });
    };
    auto q4 = types_of("q4_k_m");
    EXPECT_EQ(count(q4, "F32"), 301);
    EXPECT_EQ(count(q4, "Q6_K"), 1 + 3 * 20);  // the head; qkv/v and both ffn_down of half the layers
    EXPECT_EQ(q4["output.weight"], "Q6_K");
    for (const char* layer : {"0", "4", "7", "34", "35", "39"})
        EXPECT_EQ(q4[std::string("blk.") + layer + ".ffn_down_exps.weight"], "Q6_K") << layer;
    for (const char* layer : {"5", "6", "8", "33"})
        EXPECT_EQ(q4[std::string("blk.") + layer + ".ffn_down_exps.weight"], "Q4_K") << layer;
    EXPECT_EQ(q4["blk.0.attn_qkv.weight"], "Q6_K");
    EXPECT_EQ(q4["blk.7.attn_v.weight"], "Q6_K");
    EXPECT_EQ(q4["blk.11.attn_v.weight"], "Q4_K");
    EXPECT_EQ(q4["blk.0.ssm_alpha.weight"], "Q4_K");

    auto q3 = types_of("q3_k_m");
    EXPECT_EQ(q3["blk.0.attn_qkv.weight"], "Q5_K");
    EXPECT_EQ(q3["blk.1.attn_qkv.weight"], "Q5_K");
    EXPECT_EQ(q3["blk.2.attn_qkv.weight"], "Q4_K");
    EXPECT_EQ(q3["blk.1.ffn_down_shexp.weight"], "Q5_K");
    EXPECT_EQ(q3["blk.2.ffn_down_exps.weight"], "Q4_K");
    EXPECT_EQ(q3["blk.3.attn_output.weight"], "Q4_K");
    EXPECT_EQ(q3["blk.3.attn_q.weight"], "Q3_K");
    EXPECT_EQ(q3["output.weight"], "Q6_K");

    auto q8 = types_of("q8_0");
    EXPECT_EQ(count(q8, "F32"), 301);
    EXPECT_EQ(count(q8, "Q8_0"), 432);

    auto mxfp4 = types_of("mxfp4_moe");
    EXPECT_EQ(count(mxfp4, "MXFP4"), 3 * 40);
    EXPECT_EQ(count(mxfp4, "Q8_0"), 432 - 3 * 40);
}

TEST(MakeModelTest, FallsBackWhereRowsDoNotHoldWholeBlocks) {
    struct Case {
        const char* type;
        int n_in;
        const char* want;
    };
    constexpr Case kCases[] = {{"Q4_K", 256, "Q4_K"},     {"Q2_K", 96, "Q4_0"},     {"Q3_K", 96, "Q4_0"},
                               {"Q4_K", 96, "Q5_0"},      {"Q5_K", 96, "Q5_1"},     {"Q6_K", 96, "Q8_0"},
                               {"IQ2_XXS", 96, "IQ4_NL"}, {"IQ4_XS", 96, "IQ4_NL"}, {"Q4_K", 48, "F16"},
                               {"Q8_0", 48, "F16"},       {"F32", 48, "F32"}};
    for (const Case& c : kCases) {
        const PlannedTensor tensor{"blk.0.attn_q.weight", {c.n_in, 4}, true, {}};
        EXPECT_EQ(TypeMix(c.type).choose({tensor}, ModelShape(), {})[0]->name, c.want)
            << c.type << " " << c.n_in;
    }
}

TEST(MakeModelTest, TypesCanBeChosenTensorByTensor) {
    const TempDir dir;
    ModelSpec spec = spec_of("tiny");
    spec.type_overrides = {parse_type_override("ffn_down_exps=IQ3_S"),
                           parse_type_override("blk\\.1\\..*exps=Q5_1"),
                           parse_type_override("ffn_gate_inp=bf16")};
    const auto file = written(dir, spec);
    auto type = [&](const char* name) {
        return kernels::weight_type_info(file->find_tensor(name)->type)->name;
    };
    EXPECT_EQ(type("blk.1.ffn_down_exps.weight"), "IQ3_S") << "the first that matches wins";
    EXPECT_EQ(type("blk.1.ffn_up_exps.weight"), "Q5_1");
    EXPECT_EQ(type("blk.0.ffn_gate_inp.weight"), "BF16");
    EXPECT_THROW(parse_type_override("x"), std::invalid_argument);
    EXPECT_THROW(parse_type_override("x=Q4_K_M"), std::invalid_argument);
    EXPECT_THROW(parse_type_override("x=NVFP4"), std::invalid_argument);
    EXPECT_THROW(parse_type_override("(=Q4_K"), std::invalid_argument);
}

TEST(MakeModelTest, FusedExpertsHoldTheWeightsOfSeparateOnes) {
    const TempDir dir;
    for (const char* preset : {"tiny", "fixture"}) {
        SCOPED_TRACE(preset);
        ModelSpec spec = spec_of(preset);
        const auto separate = written(dir, spec, "separate.gguf");
        spec.shape.fuses_gate_up = true;
        const auto fused = written(dir, spec, "fused.gguf");
        const auto gate = values(*separate, "blk.1.ffn_gate_exps.weight");
        const auto up = values(*separate, "blk.1.ffn_up_exps.weight");
        const auto both = values(*fused, "blk.1.ffn_gate_up_exps.weight");
        const std::size_t n = gate.size() / static_cast<std::size_t>(spec.shape.n_expert);
        ASSERT_EQ(both.size(), 2 * gate.size());
        for (std::size_t i = 0; i < gate.size(); ++i) {
            ASSERT_EQ(both[i / n * 2 * n + i % n], gate[i]);
            ASSERT_EQ(both[i / n * 2 * n + n + i % n], up[i]);
        }
        EXPECT_EQ(raw(*separate, "blk.2.ffn_down_exps.weight"), raw(*fused, "blk.2.ffn_down_exps.weight"));
        EXPECT_EQ(fused->find_tensor("blk.1.ffn_gate_exps.weight"), nullptr);
    }
}

TEST(MakeModelTest, NextnBlockIsThereOrOnlyPromised) {
    const TempDir dir;
    ModelSpec spec = spec_of("tiny");
    const auto plain = written(dir, spec, "plain.gguf");
    spec.shape.nextn = Nextn::present;
    const auto with = written(dir, spec, "with.gguf");
    spec.shape.nextn = Nextn::promised_only;
    const auto promised = written(dir, spec, "promised.gguf");
    EXPECT_EQ(plain->tensors().size() + 20, with->tensors().size());
    EXPECT_EQ(plain->tensors().size(), promised->tensors().size());
    EXPECT_FALSE(plain->metadata().contains("qwen35moe.nextn_predict_layers"));
    for (const auto& file : {with, promised})
        EXPECT_EQ(**file->metadata().get_int("qwen35moe.block_count", 0, 99), 5);
    EXPECT_EQ(raw(*plain, "blk.3.attn_q.weight"), raw(*with, "blk.3.attn_q.weight"));
}

TEST(MakeModelTest, SameOptionsGiveTheSameBytesWholeOrSplit) {
    const TempDir dir;
    ModelSpec spec = spec_of("tiny");
    const auto first = written(dir, spec, "a.gguf"), again = written(dir, spec, "b.gguf");
    EXPECT_EQ(first->fingerprint(), again->fingerprint());
    spec.n_files = 4;
    spec.version = 2;
    spec.alignment = 128;
    const auto split = written(dir, spec, "s.gguf");
    EXPECT_EQ(split->shard_paths().size(), 4u);
    EXPECT_EQ(split->version(), 2u);
    ASSERT_EQ(split->tensors().size(), first->tensors().size());
    for (const GgufTensor& t : first->tensors())
        EXPECT_EQ(raw(*first, t.name), raw(*split, t.name)) << t.name;
    spec = spec_of("tiny");
    spec.weights.seed = 2;
    EXPECT_NE(written(dir, spec, "c.gguf")->fingerprint(), first->fingerprint());
}

TEST(MakeModelTest, ExpansionHoldsTheDequantisedValuesAndTheSameMetadata) {
    const TempDir dir;
    ModelSpec spec = spec_of("tiny");
    spec.alignment = 64;
    spec.type_overrides = {parse_type_override("blk.0.*exps=IQ2_S"), parse_type_override("attn_k=F16"),
                           parse_type_override("ssm_out=MXFP4")};
    spec.n_files = 2;
    const auto file = written(dir, spec);
    expand_f32(file->path(), dir.file("f32.gguf"));
    const auto expanded = GgufFile::open(dir.file("f32.gguf"));
    ASSERT_TRUE(expanded) << expanded.error().to_string();
    ASSERT_EQ((*expanded)->tensors().size(), file->tensors().size());
    for (const GgufTensor& t : file->tensors()) {
        const GgufTensor* e = (*expanded)->find_tensor(t.name);
        ASSERT_NE(e, nullptr);
        EXPECT_EQ(e->type, 0);
        EXPECT_EQ(e->ne, t.ne);
        EXPECT_EQ(e->n_dims, t.n_dims);
        EXPECT_EQ(values(**expanded, t.name), values(*file, t.name)) << t.name;
    }
    EXPECT_EQ(**(*expanded)->metadata().get_int("general.file_type", 0, 99), 0);
    for (const auto& entry : file->metadata().entries()) {
        if (entry.key == "general.alignment" || entry.key == "general.file_type" ||
            entry.key.starts_with("split."))
            continue;
        const model::GgufValue* value = (*expanded)->metadata().find(entry.key);
        ASSERT_NE(value, nullptr) << entry.key;
        if (const auto* scalar = std::get_if<model::GgufScalar>(&entry.value)) {
            EXPECT_EQ(std::get<model::GgufScalar>(*value), *scalar) << entry.key;
        } else {
            EXPECT_EQ(std::get<model::GgufArray>(*value).values,
                      std::get<model::GgufArray>(entry.value).values);
        }
    }
}

TEST(MakeModelTest, WideRouterGapsLeaveTheRoutersChannelsToTheEmbedding) {
    const TempDir dir;
    ModelSpec spec = spec_of("tiny");
    const auto n_embd = static_cast<std::size_t>(spec.shape.n_embd);
    const std::size_t n_routing = n_embd / 8;
    for (const RouterGap gap : {RouterGap::normal, RouterGap::wide}) {
        SCOPED_TRACE(gap == RouterGap::wide ? "wide" : "normal");
        spec.weights.router_gap = gap;
        const auto file = written(dir, spec);
        bool is_quiet = true, is_all_zero = false;  // of the routing rows; of the others
        for (const char* name : {"blk.0.ssm_out.weight", "blk.3.attn_output.weight",
                                 "blk.1.ffn_down_exps.weight", "blk.2.ffn_down_shexp.weight"}) {
            const std::vector<float> w = values(*file, name);
            const std::size_t n_in = static_cast<std::size_t>(file->find_tensor(name)->ne[0]);
            ASSERT_EQ(w.size() % (n_in * n_embd), 0U) << name;
            for (std::size_t row = 0; row < w.size() / n_in; ++row) {
                const auto first = w.begin() + static_cast<std::ptrdiff_t>(row * n_in);
                const bool is_zero = std::all_of(first, first + static_cast<std::ptrdiff_t>(n_in),
                                                 [](float v) { return v == 0; });
                if (row % n_embd < n_routing)
                    is_quiet &= is_zero;
                else
                    is_all_zero |= is_zero;
            }
        }
        const std::vector<float> router = values(*file, "blk.0.ffn_gate_inp.weight");
        bool reads_only_routing = true;
        for (std::size_t i = 0; i < router.size(); ++i)
            reads_only_routing &= i % n_embd < n_routing || router[i] == 0;
        EXPECT_EQ(is_quiet, gap == RouterGap::wide);
        EXPECT_EQ(reads_only_routing, gap == RouterGap::wide);
        EXPECT_FALSE(is_all_zero);
        EXPECT_NE(router[0], 0);
    }
}

TEST(VocabularyTest, HoldsBytesMergesAndSpecialTokens) {
    for (const std::size_t n : {std::size_t{0}, std::size_t{289}, std::size_t{300}, std::size_t{5000}}) {
        SCOPED_TRACE(n);
        const Vocabulary v = make_vocabulary(n);
        if (n != 0) {
            EXPECT_EQ(v.tokens.size(), n);
        }
        EXPECT_EQ(v.types.size(), v.tokens.size());
        const std::set<std::string> unique(v.tokens.begin(), v.tokens.end());
        EXPECT_EQ(unique.size(), v.tokens.size());
        for (const std::string& merge : v.merges) {
            const std::size_t space = merge.find(' ', 1);
            const std::string left = merge.substr(0, space), right = merge.substr(space + 1);
            EXPECT_TRUE(unique.contains(left) && unique.contains(right) && unique.contains(left + right))
                << merge;
        }
        for (const SpecialToken& token : special_tokens()) {
            const std::int64_t id = v.find(token.text);
            ASSERT_GE(id, 0) << token.text;
            EXPECT_EQ(v.types[static_cast<std::size_t>(id)], static_cast<int>(token.type));
        }
    }
    EXPECT_EQ(make_vocabulary(5000).types.back(), static_cast<int>(TokenType::unused));
    EXPECT_EQ(make_vocabulary(5000).tokens.back(), "[PAD4999]");
    EXPECT_GE(make_vocabulary(2048).find("\xC4\xA0the"), 256) << "with its leading space";
    EXPECT_THROW(make_vocabulary(288), std::invalid_argument);
}

TEST(VocabularyTest, ReadsTokenizerJsonWithBothFormsOfMerges) {
    const TempDir dir;
    for (const char* merges : {R"(["a b", "ab c"])", R"([["a", "b"], ["ab", "c"]])"}) {
        std::ofstream(dir.file("t.json"))
            << R"({"model": {"vocab": {"a":0,"b":1,"c":2,"ab":3,"abc":4}, "merges": )" << merges
            << R"(}, "added_tokens": [)"
            << R"({"id": 6, "content": "<|im_end|>", "special": true},)"
            << R"({"id": 7, "content": "<think>", "special": false}]})";
        const Vocabulary v = read_tokenizer_json(dir.file("t.json"), 10);
        EXPECT_THAT(v.tokens, ElementsAre("a", "b", "c", "ab", "abc", "[PAD5]", "<|im_end|>", "<think>",
                                          "[PAD8]", "[PAD9]"));
        EXPECT_THAT(v.types, ElementsAre(1, 1, 1, 1, 1, 5, 3, 4, 5, 5));
        EXPECT_THAT(v.merges, ElementsAre("a b", "ab c"));
    }
    std::ofstream(dir.file("bad.json")) << "{";
    EXPECT_THROW(read_tokenizer_json(dir.file("bad.json"), 0), std::runtime_error);
}

TEST(MakeModelTest, RefusesImpossibleShapesByOption) {
    struct Case {
        int ModelShape::*field;
        int value;
        const char* message;
    };
    const Case kCases[] = {
        {&ModelShape::n_head_kv, 3, "--kv-heads"},     {&ModelShape::rope_dim, 65, "--rope-dim"},
        {&ModelShape::n_expert_used, 9, "--experts"},  {&ModelShape::n_layer, 0, "--layers 0"},
        {&ModelShape::gdn_n_head_k, 3, "--gdn-heads"}, {&ModelShape::gdn_d_conv, 1, "--gdn-conv"}};
    for (const Case& c : kCases) {
        ModelShape shape = find_preset("tiny")->shape;
        shape.*c.field = c.value;
        EXPECT_THAT(shape.problem(), testing::HasSubstr(c.message));
    }
    for (const char* preset : {"tiny", "fixture", "real8", "real40"})
        EXPECT_EQ(find_preset(preset)->shape.problem(), "") << preset;
}

}  // namespace
}  // namespace pantheon::test

#include "model/qwen35moe/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "tests/model/qwen35moe/stepper.h"
#include "tests/model/qwen35moe/tiny_model.h"

namespace pantheon::test {
namespace {

using kernels::WeightType;
using testing::ElementsAre;
using testing::HasSubstr;

Error load_error(const TinyModel& tiny) {
    const auto weights = tiny.load();
    return weights ? Error(Code::internal, "loaded") : weights.error();
}

TEST(WeightsTest, EveryTensorOfEveryShapeIsUsedOrCounted) {
    for (const TinyShape& shape : all_tiny_shapes()) {
        SCOPED_TRACE(shape.label);
        const TinyModel tiny = tiny_model(shape);
        const auto weights = tiny.load();
        ASSERT_TRUE(weights) << weights.error().to_string();
        EXPECT_THAT((*weights)->unused_tensors(), testing::IsEmpty());
        EXPECT_EQ((*weights)->n_nextn_tensors(), shape.has_nextn ? (shape.is_fused ? 19 : 20) : 0);
        std::uint64_t n_bytes = 0;
        for (const TinyTensor& t : tiny.tensors) n_bytes += t.bytes.size();
        EXPECT_EQ((*weights)->weight_bytes() + (*weights)->nextn_bytes(), n_bytes);
        EXPECT_EQ((*weights)->n_vocab(), shape.n_vocab);
        EXPECT_EQ((*weights)->n_layer(), shape.n_layer);
        EXPECT_EQ((*weights)->n_embd(), shape.n_embd);
        EXPECT_EQ((*weights)->name(), shape.label);
        EXPECT_EQ((*weights)->is_head_tied(), shape.is_tied);
    }
}

TEST(WeightsTest, UnknownTensorsAreListedAndDoNotHinder) {
    TinyModel tiny = tiny_model();
    tiny.put("v.patch_embd.weight", {16, 4});
    tiny.put("blk.1.attn_q.weight", {64, 256});  // an attention tensor on a GDN layer
    tiny.put("rope_freqs.weight", {8});
    const auto weights = tiny.load();
    ASSERT_TRUE(weights) << weights.error().to_string();
    EXPECT_THAT((*weights)->unused_tensors(),
                ElementsAre("v.patch_embd.weight", "blk.1.attn_q.weight", "rope_freqs.weight"));
}

TEST(WeightsTest, EachMissingTensorIsNamedWithItsLayer) {
    TinyShape shape;
    shape.has_nextn = false;
    const TinyModel whole = tiny_model(shape);
    for (const TinyTensor& tensor : whole.tensors) {
        if (tensor.name == "output.weight") continue;  // then the head is tied
        TinyModel tiny = whole;
        tiny.drop_tensor(tensor.name);
        const Error error = load_error(tiny);
        EXPECT_EQ(error.code(), Code::data_loss);
        std::string want = tensor.name + ": missing";
        if (tensor.name.starts_with("blk.")) want = std::string("layer ") + tensor.name[4] + ": " + want;
        EXPECT_EQ(error.message(), want);
    }
}

TEST(WeightsTest, EachWrongShapeIsNamedWithBothShapes) {
    TinyShape shape;
    shape.has_nextn = false;
    const TinyModel whole = tiny_model(shape);
    for (const TinyTensor& tensor : whole.tensors) {
        if (tensor.name == "token_embd.weight") continue;  // its rows are the vocabulary
        for (std::size_t axis = 0; axis < tensor.ne.size(); ++axis) {
            TinyModel tiny = whole;
            std::vector<std::int64_t> ne = tensor.ne;
            ne[axis] += 1;
            tiny.put(tensor.name, ne);
            const Error error = load_error(tiny);
            EXPECT_EQ(error.code(), Code::data_loss);
            EXPECT_THAT(error.message(), HasSubstr(tensor.name + ": shape ["));
        }
    }
    TinyModel tiny = whole;
    tiny.put("blk.2.ffn_gate_inp.weight", {32, 8});
    EXPECT_EQ(load_error(tiny).to_string(),
              "data_loss: layer 2: blk.2.ffn_gate_inp.weight: shape [8, 32], want [8, 64]");
}

TEST(WeightsTest, TrailingOnesOfAShapeDoNotCount) {
    TinyModel tiny = tiny_model();
    tiny.tensor("blk.0.ffn_gate_inp_shexp.weight").ne = {64, 1};
    tiny.tensor("blk.1.attn_norm.weight").ne = {64, 1, 1, 1};
    tiny.tensor("blk.2.ffn_up_shexp.weight").ne = {64, 32, 1};
    EXPECT_TRUE(tiny.load());
}

TEST(WeightsTest, VocabularyAndEmbeddingMustAgree) {
    TinyModel tiny = tiny_model();
    std::vector<std::string> tokens(299, "x");
    tiny.set("tokenizer.ggml.tokens", GgufTyped::strings(tokens));
    EXPECT_EQ(load_error(tiny).to_string(),
              "data_loss: token_embd.weight: 300 rows for 299 entries of tokenizer.ggml.tokens");
    tokens.emplace_back("y");
    tiny.set("tokenizer.ggml.tokens", GgufTyped::strings(tokens));
    EXPECT_TRUE(tiny.load());
}

TEST(WeightsTest, ATypeThatCannotBeComputedWithIsRefusedByName) {
    // TQ2_0: known by name and size, 256 elements in 66 bytes.
    TinyShape shape;
    shape.n_embd = 256;
    shape.n_vocab = 40;
    TinyModel tiny = tiny_model(shape);
    TinyTensor& tensor = tiny.tensor("blk.1.attn_gate.weight");
    tensor.type = static_cast<WeightType>(35);
    tensor.bytes.assign(static_cast<std::size_t>(tensor.ne[1]) * 66, '\0');
    EXPECT_EQ(load_error(tiny).to_string(),
              "unimplemented: layer 1: blk.1.attn_gate.weight: type TQ2_0 is not supported");
}

TEST(WeightsTest, CompanionScalesAreRefused) {
    TinyModel tiny = tiny_model();
    tiny.put("blk.0.ffn_down_exps.scale", {8});
    const Error error = load_error(tiny);
    EXPECT_EQ(error.code(), Code::unimplemented);
    EXPECT_THAT(error.message(), HasSubstr("blk.0.ffn_down_exps.scale"));
}

TEST(WeightsTest, DecayMustBeNegativeAndFinite) {
    for (const float bad :
         {0.0f, 0.3f, std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
        TinyModel tiny = tiny_model();
        TinyTensor& tensor = tiny.tensor("blk.2.ssm_a");
        std::memcpy(tensor.bytes.data() + sizeof(float), &bad, sizeof bad);
        const Error error = load_error(tiny);
        EXPECT_EQ(error.code(), Code::data_loss);
        EXPECT_THAT(error.message(), HasSubstr("layer 2: blk.2.ssm_a"));
    }
}

TEST(WeightsTest, TheDecayBiasMayLackItsSuffix) {
    const Rows want = Stepper(tiny_model()).sequence(SlotId{0}, golden_tokens(), 16);
    TinyModel tiny = tiny_model();
    for (TinyTensor& tensor : tiny.tensors)
        if (tensor.name.ends_with("ssm_dt.bias")) tensor.name.resize(tensor.name.size() - 5);
    EXPECT_TRUE(tiny.contains("blk.0.ssm_dt"));
    EXPECT_EQ(Stepper(tiny).sequence(SlotId{0}, golden_tokens(), 16), want);
}

TEST(WeightsTest, FusedExpertsAreTheSameModelAsSeparateOnes) {
    TinyShape shape;
    shape.types = {{"ffn_gate_exps.weight", WeightType::q8_0}, {"ffn_up_exps.weight", WeightType::q8_0}};
    const TinyModel separate = tiny_model(shape);
    TinyModel fused = separate;
    for (int i = 0; i < shape.n_layer; ++i) {
        const std::string block = "blk." + std::to_string(i) + ".";
        const TinyTensor gate = fused.tensor(block + "ffn_gate_exps.weight");
        const TinyTensor up = fused.tensor(block + "ffn_up_exps.weight");
        TinyTensor both{block + "ffn_gate_up_exps.weight", {64, 64, 8}, WeightType::q8_0, {}, {}};
        const std::size_t per_expert = gate.bytes.size() / 8;
        for (std::size_t e = 0; e < 8; ++e)
            both.bytes +=
                gate.bytes.substr(e * per_expert, per_expert) + up.bytes.substr(e * per_expert, per_expert);
        fused.drop_tensor(gate.name);
        fused.drop_tensor(up.name);
        fused.tensors.push_back(both);
    }
    EXPECT_EQ(Stepper(fused).sequence(SlotId{0}, golden_tokens(), 16),
              Stepper(separate).sequence(SlotId{0}, golden_tokens(), 16));
}

TEST(WeightsTest, ARouterWhoseLowerHalvesAreZeroIsKeptAsBf16) {
    const std::string name = "blk.0.ffn_gate_inp.weight";
    TinyShape shape;
    shape.types = {{"ffn_gate_inp.weight", WeightType::bf16}};
    const TinyModel bf16 = tiny_model(shape);
    TinyModel wide = tiny_model();
    for (TinyTensor& t : wide.tensors) {
        if (!t.name.ends_with("ffn_gate_inp.weight")) continue;
        t.values = TinyModel(bf16).tensor(t.name).values;
        std::memcpy(t.bytes.data(), t.values.data(), t.bytes.size());
    }
    const auto tokens = golden_tokens();
    for (const model::Backend backend : {model::Backend::ref, model::Backend::cpu}) {
        Stepper narrowed(wide, 1, {model::KvFormat::f32}, 1, 64, backend);
        EXPECT_EQ(narrowed.weights().layer(0).moe.router.type, WeightType::bf16);
        Stepper want(bf16, 1, {model::KvFormat::f32}, 1, 64, backend);
        EXPECT_EQ(narrowed.sequence(SlotId{0}, tokens, 7), want.sequence(SlotId{0}, tokens, 7));
    }
    // One bit more, and the layer's router stays as it is.
    std::string& bytes = wide.tensor(name).bytes;
    bytes[bytes.size() - 4] = 1;
    const auto weights = wide.load();
    ASSERT_TRUE(weights);
    EXPECT_EQ((*weights)->layer(0).moe.router.type, WeightType::f32);
    EXPECT_EQ((*weights)->layer(1).moe.router.type, WeightType::bf16);
}

TEST(WeightsTest, OneExpertAndOneHeadKeepTheirShape) {
    TinyShape shape;
    shape.n_expert = shape.n_expert_used = 1;
    shape.n_head = shape.n_head_kv = shape.gdn_n_head_k = shape.gdn_n_head_v = 1;
    EXPECT_TRUE(tiny_model(shape).load());
}

}  // namespace
}  // namespace pantheon::test

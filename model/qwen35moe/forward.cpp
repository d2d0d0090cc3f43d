#include "model/qwen35moe/forward.h"

#include <algorithm>
#include <new>
#include <stdexcept>
#include <string>

#include "model/qwen35moe/attn_layer.h"
#include "model/qwen35moe/gdn_layer.h"
#include "model/qwen35moe/moe_block.h"

namespace pantheon::model {
namespace {

std::size_t scratch_bytes(const Weights& weights, int n_ctx) {
    const ModelConfig& config = weights.config();
    return std::max(
        {kernels::linear_scratch_bytes(weights.max_row_elems()), kernels::rope_scratch_bytes(config.rope_dim),
         kernels::gdn_heads_scratch_bytes(config.gdn_n_head_k, config.gdn_n_head_v, config.gdn_head_dim),
         kernels::attention_scratch_bytes(n_ctx, config.head_dim,
                                          config.n_head / std::max(1, config.n_head_kv))});
}

/// Moves the wanted rows to the front. They ascend, so no row is overwritten before it was moved.
void keep_rows(float* x, std::span<const std::int32_t> rows, std::int64_t width) {
    for (std::size_t i = 0; i < rows.size(); ++i)
        if (rows[i] != static_cast<std::int32_t>(i))
            std::copy_n(x + rows[i] * width, width, x + static_cast<std::int64_t>(i) * width);
}

kernels::KvRowType row_type(KvFormat format) {
    switch (format) {
        case KvFormat::f32:
            return kernels::KvRowType::f32;
        case KvFormat::f16:
            return kernels::KvRowType::f16;
        case KvFormat::q8_0:
            return kernels::KvRowType::q8_0;
        case KvFormat::q4_0:
            return kernels::KvRowType::q4_0;
    }
    return kernels::KvRowType::f32;
}

}  // namespace

StateShape state_shape(const ModelConfig& config, const KvSettings& kv) {
    StateShape shape;
    const auto size = [](int n) { return static_cast<std::size_t>(n); };
    shape.n_gdn_layers = config.n_gdn_layers();
    shape.conv_floats = size(config.gdn_conv_dim()) * size(config.gdn_d_conv - 1);
    shape.gdn_floats = size(config.gdn_n_head_v) * size(config.gdn_head_dim) * size(config.gdn_head_dim);
    shape.gdn_head_dim = config.gdn_head_dim;
    shape.n_attention_layers = config.n_attention_layers();
    shape.n_head_kv = config.n_head_kv;
    shape.head_dim = config.head_dim;
    shape.kv_type = row_type(kv.format);
    if (kv.format == KvFormat::q4_0) {
        shape.kv_sink = kv.sink;
        shape.kv_window = kv.window;
    }
    return shape;
}

Forward::Forward(std::shared_ptr<const Weights> weights, const Ops& ops, SlotStore& slots,
                 kernels::Exec& exec, StepProbe* probe, StepProfile* profile)
    : weights_(std::move(weights)), ops_(ops), slots_(slots), exec_(exec), probe_(probe), profile_(profile) {
    if (profile_) exec_.team().set_meter(&profile_->meter);
}

Status Forward::prepare(const StepBatch& batch) {
    try {
        exec_.reserve_scratch(scratch_bytes(*weights_, slots_.n_ctx()));
        work_.reserve(weights_->config(), batch.tokens.size(), batch.wanted_rows.size(),
                      static_cast<std::size_t>(weights_->n_vocab()));
    } catch (const std::bad_alloc&) {
        return Error(Code::resource_exhausted,
                     "no memory for a step of " + std::to_string(batch.n_rows()) + " rows");
    } catch (const std::length_error&) {
        return Error(Code::resource_exhausted,
                     "no memory for a step of " + std::to_string(batch.n_rows()) + " rows");
    }
    for (const StepBatch::Run& run : batch.runs)
        if (Status ok = slots_.reserve(run.slot, run.n_rows); !ok) return ok;
    return {};
}

std::optional<StepLogits> Forward::run(const StepBatch& batch, const Executor::GiveUp& give_up) {
    const ModelConfig& config = weights_->config();
    StepContext step{config, ops_, exec_, slots_, batch, work_, probe_, profile_};
    const std::int64_t n_embd = config.n_embd;
    const int n_wanted = static_cast<int>(batch.wanted_rows.size());
    float* x = work_.x.data();
    float* h = work_.h.data();

    int n_rows = batch.n_rows();
    {
        const PhaseTimer timer(profile_, Phase::embedding);
        ops_.embed_rows(exec_, weights_->token_embd(), batch.tokens.data(), x, n_rows);
    }
    const auto normalise = [&](Phase phase, std::span<const float> weight) {
        const PhaseTimer timer(profile_, phase);
        ops_.rms_norm(exec_, x, n_embd, weight.data(), h, n_rows, config.n_embd, config.rms_eps);
    };
    int n_attention = 0;
    int n_gdn = 0;
    for (int i = 0; i < config.n_layer; ++i) {
        if (give_up && give_up()) return std::nullopt;
        const LayerWeights& layer = weights_->layer(i);
        normalise(Phase::mixer_norm, layer.mixer_norm);
        kernels::ActivationRows mixer_in(h, n_embd, n_rows, work_.input_storage.data());
        if (layer.kind == MixerKind::attention) {
            const PhaseTimer timer(profile_, Phase::attention);
            run_attention(step, layer.attention, n_attention++, mixer_in, x);
        } else {
            run_gdn(step, layer.gdn, n_gdn++, mixer_in, x);
        }

        // Every token has passed the last mixer; from here on only rows that want logits matter.
        if (i == config.n_layer - 1) {
            keep_rows(x, batch.wanted_rows, n_embd);
            n_rows = n_wanted;
        }
        normalise(Phase::moe_norm, layer.moe_norm);
        kernels::ActivationRows moe_in(h, n_embd, n_rows, work_.input_storage.data());
        run_moe(step, layer.moe, i, moe_in, x);
        if (probe_) probe_->after_block(i, {x, static_cast<std::size_t>(n_rows * n_embd)});
    }
    {
        const PhaseTimer timer(profile_, Phase::head);
        ops_.rms_norm(exec_, x, n_embd, weights_->output_norm().data(), h, n_rows, config.n_embd,
                      config.rms_eps);
        if (probe_) probe_->post_norm({h, static_cast<std::size_t>(n_rows * n_embd)});
        kernels::ActivationRows head_in(h, n_embd, n_rows, work_.input_storage.data());
        ops_.linear(exec_, weights_->head(), head_in, work_.logits.data());
        ops_.tile_maxima(exec_, work_.logits.data(), n_wanted, weights_->n_vocab(), work_.tile_maxima.data());
    }
    if (profile_) ++profile_->n_steps;

    for (const StepBatch::Run& run : batch.runs) slots_.commit(run.slot, run.n_rows);
    return StepLogits{n_wanted, weights_->n_vocab(), work_.logits.data(), work_.tile_maxima.data()};
}

}  // namespace pantheon::model

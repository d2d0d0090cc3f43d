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

int divide_up(int a, int b) {
    return (a + b - 1) / b;
}

/// Moves the wanted rows to the front. They ascend, so no row is overwritten before it was moved.
void keep_rows(float* x, std::span<const std::int32_t> rows, std::int64_t width) {
    for (std::size_t i = 0; i < rows.size(); ++i)
        if (rows[i] != static_cast<std::int32_t>(i))
            std::copy_n(x + rows[i] * width, width, x + static_cast<std::int64_t>(i) * width);
}

Error no_memory_for(const StepBatch& batch) {
    return {Code::resource_exhausted, "no memory for a step of " + std::to_string(batch.n_rows()) + " rows"};
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

Status Forward::begin(StepBatch batch, Pass& pass) {
    const std::size_t n_floats = batch.tokens.size() * static_cast<std::size_t>(weights_->config().n_embd);
    try {
        if (pass.x.size() < n_floats) pass.x.resize(n_floats);
    } catch (const std::bad_alloc&) {
        return no_memory_for(batch);
    } catch (const std::length_error&) {
        return no_memory_for(batch);
    }
    pass.batch = std::move(batch);
    pass.n_sublayers = pass.n_attended = pass.n_gdn = pass.n_attention = 0;
    if (Status ok = prepare(pass); !ok) return ok;
    for (const StepBatch::Run& run : pass.batch.runs)
        if (Status ok = slots_.reserve(run.slot, run.n_rows); !ok) return ok;
    return {};
}

Status Forward::prepare(const Pass& pass) {
    try {
        exec_.reserve_scratch(scratch_bytes(*weights_, slots_.n_ctx()));
        work_.reserve(weights_->config(), pass.batch.tokens.size(), pass.batch.wanted_rows.size(),
                      static_cast<std::size_t>(weights_->n_vocab()));
    } catch (const std::bad_alloc&) {
        return no_memory_for(pass.batch);
    } catch (const std::length_error&) {
        return no_memory_for(pass.batch);
    }
    return {};
}

void Forward::normalise(const float* x, std::span<const float> weight, int n_rows) {
    const ModelConfig& config = weights_->config();
    ops_.rms_norm(exec_, x, config.n_embd, weight.data(), work_.h.data(), n_rows, config.n_embd,
                  config.rms_eps);
}

void Forward::embed(Pass& pass) {
    const PhaseTimer timer(profile_, Phase::embedding);
    ops_.embed_rows(exec_, weights_->token_embd(), pass.batch.tokens.data(), pass.x.data(),
                    pass.batch.n_rows());
}

void Forward::run_mixer(StepContext& step, Pass& pass, int first_row, int n_rows) {
    const ModelConfig& config = weights_->config();
    const LayerWeights& layer = weights_->layer(pass.n_sublayers / 2);
    float* x = pass.x.data() + static_cast<std::ptrdiff_t>(first_row) * config.n_embd;
    {
        const PhaseTimer timer(profile_, Phase::mixer_norm);
        normalise(x, layer.mixer_norm, n_rows);
    }
    kernels::ActivationRows input(work_.h.data(), config.n_embd, n_rows, work_.input_storage.data());
    if (layer.kind == MixerKind::attention) {
        const PhaseTimer timer(profile_, Phase::attention);
        run_attention(step, layer.attention, pass.n_attention, first_row, input, x);
    } else {
        run_gdn(step, layer.gdn, pass.n_gdn, input, x);
    }
}

void Forward::run_experts(StepContext& step, Pass& pass) {
    const ModelConfig& config = weights_->config();
    const int i = pass.n_sublayers / 2;
    const LayerWeights& layer = weights_->layer(i);
    const int n_rows =
        i == config.n_layer - 1 ? static_cast<int>(pass.batch.wanted_rows.size()) : pass.batch.n_rows();
    {
        const PhaseTimer timer(profile_, Phase::moe_norm);
        normalise(pass.x.data(), layer.moe_norm, n_rows);
    }
    kernels::ActivationRows input(work_.h.data(), config.n_embd, n_rows, work_.input_storage.data());
    run_moe(step, layer.moe, i, input, pass.x.data());
    if (probe_)
        probe_->after_block(
            i, {pass.x.data(), static_cast<std::size_t>(n_rows) * static_cast<std::size_t>(config.n_embd)});
}

StepLogits Forward::run_head(StepContext& step, Pass& pass) {
    const ModelConfig& config = weights_->config();
    const int n_wanted = static_cast<int>(step.batch.wanted_rows.size());
    const PhaseTimer timer(profile_, Phase::head);
    normalise(pass.x.data(), weights_->output_norm(), n_wanted);
    float* h = work_.h.data();
    if (probe_)
        probe_->post_norm({h, static_cast<std::size_t>(n_wanted) * static_cast<std::size_t>(config.n_embd)});
    kernels::ActivationRows input(h, config.n_embd, n_wanted, work_.input_storage.data());
    ops_.linear(exec_, weights_->head(), input, work_.logits.data());
    ops_.tile_maxima(exec_, work_.logits.data(), n_wanted, weights_->n_vocab(), work_.tile_maxima.data());
    return {n_wanted, weights_->n_vocab(), work_.logits.data(), work_.tile_maxima.data()};
}

RunUnit Forward::next_unit(const Pass& pass) const {
    const int i = pass.n_sublayers / 2;
    if (i == weights_->config().n_layer) return RunUnit::head;
    if (pass.n_sublayers % 2 == 1) return RunUnit::experts;
    return weights_->layer(i).kind == MixerKind::attention ? RunUnit::attention : RunUnit::gdn;
}

void Forward::run_unit(StepContext& step, Pass& pass, RunUnit unit, bool may_pause) {
    const int n_rows = pass.batch.n_rows();
    if (pass.n_sublayers == 0 && pass.n_attended == 0) embed(pass);
    if (unit == RunUnit::experts) {
        run_experts(step, pass);
    } else if (unit == RunUnit::gdn) {
        run_mixer(step, pass, 0, n_rows);
        ++pass.n_gdn;
    } else {
        int n = n_rows - pass.n_attended;
        if (may_pause) {
            const int most = attention_unit_rows(pass.batch.positions.back(), exec_.team().n_threads());
            // Units as like as they can be: the last tells what the next will take.
            n = std::min(n, divide_up(n_rows, divide_up(n_rows, most)));
        }
        run_mixer(step, pass, pass.n_attended, n);
        pass.n_attended += n;
        if (pass.n_attended < n_rows) return;
        pass.n_attended = 0;
        ++pass.n_attention;
    }
    // Every token has passed the last mixer; from here on only rows that want logits matter.
    const ModelConfig& config = weights_->config();
    if (++pass.n_sublayers == 2 * config.n_layer - 1)
        keep_rows(pass.x.data(), pass.batch.wanted_rows, config.n_embd);
}

std::optional<StepLogits> Forward::run(Pass& pass, const Executor::Pause& pause) {
    StepContext step{weights_->config(), ops_, exec_, slots_, pass.batch, work_, probe_, profile_};
    for (RunUnit unit = next_unit(pass); unit != RunUnit::head;) {
        run_unit(step, pass, unit, pause != nullptr);
        const RunUnit next = next_unit(pass);
        if (pause && pause(unit, next)) return std::nullopt;
        unit = next;
    }
    const StepLogits logits = run_head(step, pass);
    if (profile_) ++profile_->n_steps;
    for (const StepBatch::Run& run : pass.batch.runs) slots_.commit(run.slot, run.n_rows);
    return logits;
}

}  // namespace pantheon::model

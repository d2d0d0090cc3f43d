#include "model/executor.h"

#include <map>
#include <new>
#include <optional>
#include <string>
#include <system_error>

#include "kernels/exec/exec.h"
#include "kernels/exec/thread_team.h"
#include "model/qwen35moe/forward.h"
#include "model/qwen35moe/ops.h"
#include "model/qwen35moe/packed_weights.h"
#include "model/qwen35moe/weights.h"
#include "model/state/host_checkpoint.h"
#include "model/state/slot_store.h"
#include "model/step_batch.h"

namespace pantheon::model {
namespace {

constexpr int kMaxThreads = 1024;
constexpr int kMaxSlots = 4096;

KvSettings in_q4_0(KvSettings kv) {
    kv.format = KvFormat::q4_0;
    return kv;
}

Error amid_a_run(SlotId slot) {
    return {Code::failed_precondition,
            "slot " + std::to_string(slot.value) + " is amid a run that is taken in parts"};
}

/// All layers on the host, in one thread team.
class HostExecutor final : public Executor {
  public:
    HostExecutor(std::shared_ptr<const Weights> weights, const ExecutorConfig& config)
        : weights_(std::move(weights)),
          backend_(config.backend),
          team_(config.n_threads),
          exec_(team_),
          slots_(state_shape(weights_->config(), config.kv), config.n_slots, config.n_ctx,
                 config.kv.overflow == KvOverflow::slide ? std::optional(config.kv.sink) : std::nullopt,
                 {config.kv_pool_bytes, state_shape(weights_->config(), in_q4_0(config.kv)), &exec_}),
          forward_(weights_, ops_for(config.backend), slots_, exec_, nullptr, config.profile) {}

    using Executor::bind;
    using Executor::snapshot;
    Status bind(SlotId slot, SequenceKv kv) override { return slots_.bind(slot, kv == SequenceKv::q4_0); }
    Status convert_to_q4_0(SlotId slot) override {
        if (begun_.contains(slot)) return amid_a_run(slot);
        return slots_.convert(slot);
    }
    Status restore(SlotId slot, const Checkpoint& from) override { return slots_.restore(slot, from); }
    Result<CheckpointPtr> snapshot(SlotId slot, ImageFormat format) override {
        if (begun_.contains(slot)) return amid_a_run(slot);
        return slots_.snapshot(slot, format);
    }
    void release(SlotId slot) override {
        begun_.erase(slot);
        slots_.release(slot);
    }
    std::int32_t length(SlotId slot) const override { return slots_.length(slot); }

    Result<StepLogits> step(std::span<const StepRun> runs) override {
        for (const StepRun& run : runs)
            if (begun_.contains(run.slot)) return amid_a_run(run.slot);
        auto batch = plan_step(runs, slots_, weights_->n_vocab());
        if (!batch) return std::move(batch).error();
        if (Status ok = forward_.begin(*std::move(batch), whole_); !ok) return std::move(ok).error();
        return *forward_.run(whole_, {});
    }

    Result<std::optional<StepLogits>> step_in_parts(const StepRun& run, const Pause& pause) override {
        auto batch = plan_step({&run, 1}, slots_, weights_->n_vocab());
        if (!batch) return std::move(batch).error();
        auto begun = begun_.find(run.slot);
        if (begun == begun_.end()) {
            Pass pass;
            if (Status ok = forward_.begin(*std::move(batch), pass); !ok) return std::move(ok).error();
            begun = begun_.emplace(run.slot, std::move(pass)).first;
        } else if (!(begun->second.batch == *batch)) {
            return Error(Code::failed_precondition,
                         "slot " + std::to_string(run.slot.value) + ": another run has begun");
        } else if (Status ok = forward_.prepare(begun->second); !ok) {
            return std::move(ok).error();
        }
        const auto logits = forward_.run(begun->second, pause);
        if (logits) begun_.erase(begun);
        return logits;
    }

    void begin_repack(Repack repack) override {
        if (backend_ != Backend::cpu) return;
        // The old copies go first: both at once might not fit.
        forward_.set_weights(weights_);
        packed_.reset();
        if (repack == Repack::none) return;
        packed_ = std::make_unique<PackedWeights>(weights_, repack, exec_);
        forward_.set_weights(packed_->weights());
    }
    Result<bool> pack_some(std::chrono::microseconds budget) override {
        return packed_ ? packed_->pack_some(budget) : false;
    }
    std::uint64_t repack_bytes() const override { return packed_ ? packed_->n_bytes() : 0; }
    void release_scratch() override {
        forward_.release_scratch();
        whole_ = {};
    }

    std::uint64_t kv_used_bytes() const override { return slots_.kv_used_bytes(); }
    std::uint64_t kv_pool_bytes() const override { return slots_.kv_pool_bytes(); }

  private:
    std::shared_ptr<const Weights> weights_;
    std::unique_ptr<PackedWeights> packed_;
    Backend backend_;
    kernels::ThreadTeam team_;
    kernels::Exec exec_;
    SlotStore slots_;
    Forward forward_;
    Pass whole_;                    // kept for its memory
    std::map<SlotId, Pass> begun_;  // in parts
};

Status check_range(const char* name, int value, int max, int min = 1) {
    if (value >= min && value <= max) return {};
    return Error(Code::invalid_argument, std::string(name) + ": " + std::to_string(value) + " is outside " +
                                             std::to_string(min) + " … " + std::to_string(max));
}

}  // namespace

KvSizes kv_sizes(const Weights& weights, const KvSettings& kv, int n_ctx) {
    const StateShape shape = state_shape(weights.config(), kv);
    return {shape.kv_bytes_per_page_row() / kernels::kKvPageRows, shape.half_bytes_of(n_ctx),
            shape.kv_bytes_of(n_ctx)};
}

CheckpointSizes checkpoint_sizes(const Weights& weights, const KvSettings& kv, ImageFormat format) {
    const StateShape shape = state_shape(weights.config(), kv);
    CheckpointSizes sizes{shape.image_bytes(format), shape.kv_bytes_per_page_row(), kernels::kKvPageRows};
    if (shape.keeps_half()) sizes.half_block_bytes = shape.in_half().kv_bytes_per_page_row();
    sizes.sink = shape.kv_sink;
    sizes.window = shape.kv_window;
    sizes.parked_extra_bytes = shape.image_bytes() - sizes.image_bytes;
    return sizes;
}

std::shared_ptr<const CheckpointCodec> checkpoint_codec(const Weights& weights, const KvSettings& kv,
                                                        ImageFormat format) {
    return host_checkpoint_codec(state_shape(weights.config(), kv), format);
}

Status Executor::repack(Repack repack) {
    begin_repack(repack);
    for (;;) {
        const Result<bool> more = pack_some(std::chrono::hours(1));
        if (!more) return Error(more.error());
        if (!*more) return {};
    }
}

Result<std::unique_ptr<Executor>> Executor::create(std::shared_ptr<const Weights> weights,
                                                   const ExecutorConfig& config) {
    if (!weights) return Error(Code::invalid_argument, "weights: none");
    if (Status ok = check_range("n_threads", config.n_threads, kMaxThreads); !ok)
        return std::move(ok).error();
    if (Status ok = check_range("n_slots", config.n_slots, kMaxSlots); !ok) return std::move(ok).error();
    if (Status ok = check_range("n_ctx", config.n_ctx, 1 << 30); !ok) return std::move(ok).error();
    const int max_sink = config.kv.overflow == KvOverflow::slide ? config.n_ctx - 1 : 1 << 30;
    if (Status ok = check_range("kv.sink", config.kv.sink, max_sink, 0); !ok) return std::move(ok).error();
    if (Status ok = check_range("kv.window", config.kv.window, 1 << 30, 0); !ok) return std::move(ok).error();
    try {
        std::unique_ptr<Executor> executor = std::make_unique<HostExecutor>(std::move(weights), config);
        if (Status ok = executor->repack(config.repack); !ok) return std::move(ok).error();
        return executor;
    } catch (const std::bad_alloc&) {
        return Error(Code::resource_exhausted, "no memory for an executor");
    } catch (const std::system_error& error) {  // no more threads to be had
        return Error(Code::resource_exhausted, std::string("thread team: ") + error.what());
    }
}

}  // namespace pantheon::model

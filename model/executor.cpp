#include "model/executor.h"

#include <new>
#include <string>
#include <system_error>

#include "kernels/exec/exec.h"
#include "kernels/exec/thread_team.h"
#include "model/qwen35moe/forward.h"
#include "model/qwen35moe/ops.h"
#include "model/qwen35moe/weights.h"
#include "model/state/slot_store.h"
#include "model/step_batch.h"

namespace pantheon::model {
namespace {

constexpr int kMaxThreads = 1024;
constexpr int kMaxSlots = 4096;

/// All layers on the host, in one thread team.
class HostExecutor final : public Executor {
  public:
    HostExecutor(std::shared_ptr<const Weights> weights, const ExecutorConfig& config)
        : weights_(std::move(weights)),
          team_(config.n_threads),
          exec_(team_),
          slots_(state_shape(weights_->config(), config.kv_format), config.n_slots, config.n_ctx),
          forward_(weights_, ops_for(config.backend), slots_, exec_) {}

    Status bind(SlotId slot) override { return slots_.bind(slot); }
    Status restore(SlotId slot, const Checkpoint& from) override { return slots_.restore(slot, from); }
    Result<CheckpointPtr> snapshot(SlotId slot) override { return slots_.snapshot(slot); }
    void release(SlotId slot) override { slots_.release(slot); }
    std::int32_t length(SlotId slot) const override { return slots_.length(slot); }

    Result<StepLogits> step(std::span<const StepRun> runs) override {
        auto batch = plan_step(runs, slots_, weights_->n_vocab());
        if (!batch) return std::move(batch).error();
        if (Status ok = forward_.prepare(*batch); !ok) return std::move(ok).error();
        return forward_.run(*batch);
    }

    std::uint64_t kv_used_bytes() const override { return slots_.kv_used_bytes(); }
    std::uint64_t kv_pool_bytes() const override { return slots_.kv_pool_bytes(); }

  private:
    std::shared_ptr<const Weights> weights_;
    kernels::ThreadTeam team_;
    kernels::Exec exec_;
    SlotStore slots_;
    Forward forward_;
};

Status check_range(const char* name, int value, int max) {
    if (value >= 1 && value <= max) return {};
    return Error(Code::invalid_argument,
                 std::string(name) + ": " + std::to_string(value) + " is outside 1 … " + std::to_string(max));
}

}  // namespace

CheckpointSizes checkpoint_sizes(const Weights& weights, KvFormat kv_format) {
    const StateShape shape = state_shape(weights.config(), kv_format);
    return {shape.image_bytes(), shape.kv_bytes_per_page_row(), kernels::kKvPageRows};
}

Result<std::unique_ptr<Executor>> Executor::create(std::shared_ptr<const Weights> weights,
                                                   const ExecutorConfig& config) {
    if (!weights) return Error(Code::invalid_argument, "weights: none");
    if (Status ok = check_range("n_threads", config.n_threads, kMaxThreads); !ok)
        return std::move(ok).error();
    if (Status ok = check_range("n_slots", config.n_slots, kMaxSlots); !ok) return std::move(ok).error();
    if (Status ok = check_range("n_ctx", config.n_ctx, 1 << 30); !ok) return std::move(ok).error();
    try {
        return std::unique_ptr<Executor>(new HostExecutor(std::move(weights), config));
    } catch (const std::bad_alloc&) {
        return Error(Code::resource_exhausted, "no memory for an executor");
    } catch (const std::system_error& error) {  // no more threads to be had
        return Error(Code::resource_exhausted, std::string("thread team: ") + error.what());
    }
}

}  // namespace pantheon::model

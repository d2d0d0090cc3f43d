// The pass over the weights: embedding, layers, head.
#pragma once

#include <memory>
#include <optional>

#include "kernels/exec/exec.h"
#include "model/executor.h"
#include "model/qwen35moe/ops.h"
#include "model/qwen35moe/probe.h"
#include "model/qwen35moe/step_context.h"
#include "model/qwen35moe/weights.h"
#include "model/state/slot_store.h"
#include "model/step_batch.h"
#include "runtime/base/status.h"

namespace pantheon::model {

/// The state that a sequence of this model has.
StateShape state_shape(const ModelConfig& config, const KvSettings& kv);

class Forward {
  public:
    /// slots and exec must outlive this object.
    Forward(std::shared_ptr<const Weights> weights, const Ops& ops, SlotStore& slots, kernels::Exec& exec,
            StepProbe* probe = nullptr, StepProfile* profile = nullptr);

    /// Other copies of the same weights, between two steps.
    void set_weights(std::shared_ptr<const Weights> weights) { weights_ = std::move(weights); }

    /// Frees the working memory; the next prepare() takes what it needs.
    void release_scratch() { work_ = Workspace(); }

    /// Takes the memory that the step needs, KV pages included. resource_exhausted: no slot has changed.
    Status prepare(const StepBatch& batch);
    /// Runs a prepared batch and advances its slots. Cannot fail. The logits are valid until the next
    /// prepare(). Nothing: it was given up between two layers; its slots may only be released.
    std::optional<StepLogits> run(const StepBatch& batch, const Executor::GiveUp& give_up);

  private:
    std::shared_ptr<const Weights> weights_;
    const Ops& ops_;
    SlotStore& slots_;
    kernels::Exec& exec_;
    StepProbe* probe_;
    StepProfile* profile_;
    Workspace work_;
};

}  // namespace pantheon::model

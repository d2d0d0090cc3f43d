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

/// One pass over the weights as far as it has come. It goes on in units (RunUnit); between two of them all
/// that it needs is here and in the states of its slots.
struct Pass {
    StepBatch batch;
    std::vector<float> x;            // f32 [rows, n_embd]: the residual stream
    int n_sublayers = 0;             // done: mixer and experts of each layer take turns
    int n_attended = 0;              // rows for which the next one, attention, is done
    int n_gdn = 0, n_attention = 0;  // layers of each kind whose mixers are done
};

class Forward {
  public:
    /// slots and exec must outlive this object.
    Forward(std::shared_ptr<const Weights> weights, const Ops& ops, SlotStore& slots, kernels::Exec& exec,
            StepProbe* probe = nullptr, StepProfile* profile = nullptr);

    /// Other copies of the same weights, between two steps.
    void set_weights(std::shared_ptr<const Weights> weights) { weights_ = std::move(weights); }

    /// Frees the working memory; the next prepare() takes what it needs.
    void release_scratch() { work_ = Workspace(); }

    /// Takes the memory that a pass keeps, KV pages included, and makes `pass` its beginning.
    /// resource_exhausted: no slot has changed.
    Status begin(StepBatch batch, Pass& pass);
    /// Takes the working memory for run(), which others may have used meanwhile. resource_exhausted: the pass
    /// is what it was.
    Status prepare(const Pass& pass);
    /// Runs a prepared pass, to its end or, after at least one unit, until `pause` says so. Cannot fail. At
    /// the end its slots have advanced and there are logits, valid until the next prepare().
    std::optional<StepLogits> run(Pass& pass, const Executor::Pause& pause);

  private:
    RunUnit next_unit(const Pass& pass) const;
    void run_unit(StepContext& step, Pass& pass, RunUnit unit, bool may_pause);
    void embed(Pass& pass);
    /// The mixer of the next layer for n_rows rows from first_row on.
    void run_mixer(StepContext& step, Pass& pass, int first_row, int n_rows);
    void run_experts(StepContext& step, Pass& pass);
    StepLogits run_head(StepContext& step, Pass& pass);
    void normalise(const float* x, std::span<const float> weight, int n_rows);

    std::shared_ptr<const Weights> weights_;
    const Ops& ops_;
    SlotStore& slots_;
    kernels::Exec& exec_;
    StepProbe* probe_;
    StepProfile* profile_;
    Workspace work_;
};

}  // namespace pantheon::model

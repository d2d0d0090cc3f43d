// The experts of a layer: routed ones and the shared one.
#pragma once

#include "model/qwen35moe/step_context.h"
#include "model/qwen35moe/weights.h"

namespace pantheon::model {

/// x ← x + MOE(y) for rows of the normalised residual stream.
/// y, x   f32 [y.n_rows(), n_embd]    layer   the block's index, for the probe
void run_moe(StepContext& step, const MoeWeights& weights, int layer, kernels::ActivationRows& y, float* x);

}  // namespace pantheon::model

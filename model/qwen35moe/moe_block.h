// The experts of a layer: routed ones and the shared one.
#pragma once

#include "model/qwen35moe/step_context.h"
#include "model/qwen35moe/weights.h"

namespace pantheon::model {

/// out = MOE(y) for n_rows rows of the normalised residual stream.
/// y, out   f32 [n_rows, n_embd]    layer   the block's index, for the probe
void run_moe(StepContext& step, const MoeWeights& weights, int layer, const float* y, float* out, int n_rows);

}  // namespace pantheon::model

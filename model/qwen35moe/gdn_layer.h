// The mixer of a Gated-Delta-Net layer.
#pragma once

#include "model/qwen35moe/step_context.h"
#include "model/qwen35moe/weights.h"

namespace pantheon::model {

/// x ← x + GDN(h) for all rows of the step; advances the convolution and delta-rule states of their slots.
/// h, x   f32 [n_rows, n_embd]    gdn_layer   counted among the GDN layers
void run_gdn(StepContext& step, const GdnWeights& weights, int gdn_layer, kernels::ActivationRows& h,
             float* x);

}  // namespace pantheon::model

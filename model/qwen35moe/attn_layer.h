// The mixer of an attention layer.
#pragma once

#include "model/qwen35moe/step_context.h"
#include "model/qwen35moe/weights.h"

namespace pantheon::model {

/// x ← x + ATTN(h) for all rows of the step; appends their K and V to the slots.
/// h, x   f32 [n_rows, n_embd]    attention_layer   counted among the attention layers
void run_attention(StepContext& step, const AttentionWeights& weights, int attention_layer,
                   kernels::ActivationRows& h, float* x);

}  // namespace pantheon::model

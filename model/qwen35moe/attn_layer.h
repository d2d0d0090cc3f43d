// The mixer of an attention layer.
#pragma once

#include "model/qwen35moe/step_context.h"
#include "model/qwen35moe/weights.h"

namespace pantheon::model {

/// x ← x + ATTN(h) for h.n_rows() rows of the step from first_row on; appends their K and V to the slots.
/// Those before them must have been taken.
/// h, x   f32 [n_rows, n_embd], from first_row on    attention_layer   counted among the attention layers
void run_attention(StepContext& step, const AttentionWeights& weights, int attention_layer, int first_row,
                   kernels::ActivationRows& h, float* x);

/// How many rows about position pos a unit of attention has at most, so that it takes about as long wherever
/// it is: a row costs its projections and the keys that it reads. Never so few that what is unpacked of a
/// page serves a row alone.
int attention_unit_rows(std::int32_t pos, int n_threads);

}  // namespace pantheon::model

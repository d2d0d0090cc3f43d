// The two gates of the gated delta rule: how strongly a token is written, and how fast the state decays.
#pragma once

#include "kernels/exec/exec.h"

namespace pantheon::kernels {

/// beta[t][h] = sigmoid(b[t][h])
/// g[t][h]    = a[h] · softplus(alpha[t][h] + dt[h])       softplus(x) = x if x > 20, else log(1 + e^x)
/// b, alpha, beta, g   f32 [n_tokens, n_head_v]; beta may be b, g may be alpha
/// a    f32 [n_head_v], < 0, used as stored (it holds −exp(A_log)); so g ≤ 0 is a log decay
/// dt   f32 [n_head_v]      Scratch: none.
using GdnGates = void(Exec& exec, const float* b, const float* alpha, const float* a, const float* dt,
                      float* beta, float* g, int n_tokens, int n_head_v);
GdnGates gdn_gates_ref, gdn_gates_cpu;

/// One head of one token, as cpu computes it.
void gdn_gates_of_head_cpu(float b, float alpha, float a, float dt, float& beta, float& g);

}  // namespace pantheon::kernels

// Writes the K and V rows of new tokens into their sequences' pages.
#pragma once

#include "kernels/attention/kv_view.h"
#include "kernels/exec/exec.h"

namespace pantheon::kernels {

/// For every run and KV head: cache row pos + j ← row first_row + j of k and of v, in the format of the pages
/// (store_kv_row), and once more in f16 where the view has a page for that.
/// k, v   f32 [n_rows, n_head_kv, head_dim]   k after norm and RoPE, v as projected
/// runs   [n_runs], each with pages for its rows    Scratch: none.
using KvAppend = void(Exec& exec, const AttentionRun* runs, int n_runs, const float* k, const float* v);
KvAppend kv_append_ref;

}  // namespace pantheon::kernels

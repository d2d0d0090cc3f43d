// The one table that decides which implementation of each op a step runs.
#pragma once

#include "kernels/attention/attention.h"
#include "kernels/attention/kv_append.h"
#include "kernels/attention/output_gate.h"
#include "kernels/attention/rope.h"
#include "kernels/gdn/gdn_heads.h"
#include "kernels/linear/embed_rows.h"
#include "kernels/linear/linear.h"
#include "kernels/moe/expert_ffn.h"
#include "kernels/moe/router.h"
#include "kernels/norm/rms_norm.h"
#include "kernels/sampling/tile_maxima.h"
#include "model/executor.h"

namespace pantheon::model {

struct Ops {
    kernels::EmbedRows* embed_rows;
    kernels::RmsNorm* rms_norm;
    kernels::Linear* linear;
    kernels::LinearAll* linear_all;
    kernels::LinearAdd* linear_add;

    kernels::Rope* rope;
    kernels::KvAppend* kv_append;
    kernels::Attention* attention;
    kernels::OutputGate* output_gate;

    kernels::GdnHeads* gdn_heads;

    kernels::Router* router;
    kernels::ExpertHidden* expert_hidden;
    kernels::ExpertOutput* expert_output;

    kernels::TileMaxima* tile_maxima;
};

const Ops& ops_for(Backend backend);

}  // namespace pantheon::model

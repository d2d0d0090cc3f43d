// The one table that decides which implementation of each op a step runs.
#pragma once

#include "kernels/attention/attention.h"
#include "kernels/attention/kv_append.h"
#include "kernels/attention/output_gate.h"
#include "kernels/attention/rope.h"
#include "kernels/gdn/causal_conv.h"
#include "kernels/gdn/gated_delta_rule.h"
#include "kernels/gdn/gated_rms_norm.h"
#include "kernels/gdn/gdn_gates.h"
#include "kernels/linear/add_rows.h"
#include "kernels/linear/embed_rows.h"
#include "kernels/linear/linear.h"
#include "kernels/moe/expert_linear.h"
#include "kernels/moe/moe_combine.h"
#include "kernels/moe/router.h"
#include "kernels/moe/swiglu.h"
#include "kernels/norm/l2_norm.h"
#include "kernels/norm/rms_norm.h"
#include "model/executor.h"

namespace pantheon::model {

struct Ops {
    kernels::EmbedRows* embed_rows;
    kernels::RmsNorm* rms_norm;
    kernels::Linear* linear;
    kernels::AddRows* add_rows;

    kernels::Rope* rope;
    kernels::KvAppend* kv_append;
    kernels::Attention* attention;
    kernels::OutputGate* output_gate;

    kernels::CausalConv* causal_conv;
    kernels::L2Norm* l2_norm;
    kernels::GdnGates* gdn_gates;
    kernels::GatedDeltaRule* gated_delta_rule;
    kernels::GatedRmsNorm* gated_rms_norm;

    kernels::Router* router;
    kernels::ExpertLinear* expert_linear;
    kernels::Swiglu* swiglu;
    kernels::MoeCombine* moe_combine;
};

const Ops& ops_for(Backend backend);

}  // namespace pantheon::model

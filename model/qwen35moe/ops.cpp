#include "model/qwen35moe/ops.h"

namespace pantheon::model {

const Ops& ops_for(Backend backend) {
    using namespace kernels;
    static constexpr Ops kRef = {
        embed_rows_ref, rms_norm_ref,         linear_ref,         add_rows_ref,    rope_ref,
        kv_append_ref,  attention_ref,        output_gate_ref,    causal_conv_ref, l2_norm_ref,
        gdn_gates_ref,  gated_delta_rule_ref, gated_rms_norm_ref, router_ref,      expert_linear_ref,
        swiglu_ref,     moe_combine_ref,
    };
    switch (backend) {
        case Backend::ref:
            return kRef;
    }
    return kRef;
}

}  // namespace pantheon::model

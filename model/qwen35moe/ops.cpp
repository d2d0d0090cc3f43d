#include "model/qwen35moe/ops.h"

#include <iterator>

namespace pantheon::model {
namespace {

const char* backend_name(Backend backend) {
    switch (backend) {
        case Backend::ref:
            break;
    }
    return "ref";
}

}  // namespace

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

std::vector<std::pair<std::string, std::string>> op_choices(Backend backend) {
    static constexpr const char* kOps[] = {
        "embed_rows",     "rms_norm",    "linear",        "add_rows", "rope",        "kv_append",
        "attention",      "output_gate", "causal_conv",   "l2_norm",  "gdn_gates",   "gated_delta_rule",
        "gated_rms_norm", "router",      "expert_linear", "swiglu",   "moe_combine",
    };
    static_assert(std::size(kOps) * sizeof(void (*)()) == sizeof(Ops),
                  "an op without a name, or the reverse");
    std::vector<std::pair<std::string, std::string>> choices;
    for (const char* op : kOps) choices.emplace_back(op, backend_name(backend));
    return choices;
}

}  // namespace pantheon::model

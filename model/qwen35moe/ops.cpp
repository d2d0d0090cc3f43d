#include "model/qwen35moe/ops.h"

#include <iterator>

namespace pantheon::model {
namespace {

using namespace kernels;

constexpr Ops kRef = {
    embed_rows_ref, rms_norm_ref,      linear_ref,        linear_all_ref,  linear_add_ref,
    rope_ref,       kv_append_ref,     attention_ref,     output_gate_ref, gdn_heads_ref,
    router_ref,     expert_hidden_ref, expert_output_ref, tile_maxima_ref,
};
// embed_rows and kv_append only copy or round once: there is nothing to do differently.
constexpr Ops kCpu = {
    embed_rows_ref, rms_norm_cpu,      linear_cpu,        linear_all_cpu,  linear_add_cpu,
    rope_cpu,       kv_append_ref,     attention_cpu,     output_gate_cpu, gdn_heads_cpu,
    router_cpu,     expert_hidden_cpu, expert_output_cpu, tile_maxima_cpu,
};

struct OpName {
    const char* name;
    bool is_shared;  // one implementation serves every host backend
};

}  // namespace

const Ops& ops_for(Backend backend) {
    switch (backend) {
        case Backend::ref:
            return kRef;
        case Backend::cpu:
            return kCpu;
    }
    return kRef;
}

std::string isa_name(Backend backend) {
    return cpu_isa_name(backend == Backend::cpu ? host_cpu_isa() : CpuIsa::scalar);
}

std::vector<std::pair<std::string, std::string>> op_choices(Backend backend) {
    static constexpr OpName kOps[] = {
        {"embed_rows", true},     {"rms_norm", false},    {"linear", false},   {"linear_all", false},
        {"linear_add", false},    {"rope", false},        {"kv_append", true}, {"attention", false},
        {"output_gate", false},   {"gdn_heads", false},   {"router", false},   {"expert_hidden", false},
        {"expert_output", false}, {"tile_maxima", false},
    };
    static_assert(std::size(kOps) * sizeof(void (*)()) == sizeof(Ops),
                  "an op without a name, or the reverse");
    std::vector<std::pair<std::string, std::string>> choices;
    for (const OpName& op : kOps)
        choices.emplace_back(op.name, backend == Backend::ref || op.is_shared ? "ref" : isa_name(backend));
    return choices;
}

}  // namespace pantheon::model

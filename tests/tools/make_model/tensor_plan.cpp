#include "tests/tools/make_model/tensor_plan.h"

#include <utility>

namespace pantheon::test {
namespace {

class Planner {
  public:
    Planner(const ModelShape& shape, std::int64_t n_vocab) : s_(shape), n_vocab_(n_vocab) {}

    std::vector<PlannedTensor> plan() {
        matrix("token_embd.weight", s_.n_embd, n_vocab_);
        for (int layer = 0; layer < s_.n_layer; ++layer) {
            prefix_ = "blk." + std::to_string(layer) + ".";
            matrix_free("attn_norm.weight", {s_.n_embd});
            if (s_.is_attention(layer)) {
                attention();
            } else {
                gated_delta_net();
            }
            moe();
        }
        if (s_.nextn == Nextn::present) nextn_block();
        prefix_.clear();
        matrix_free("output_norm.weight", {s_.n_embd});
        if (!s_.is_tied) matrix("output.weight", s_.n_embd, n_vocab_);
        return std::move(tensors_);
    }

  private:
    void add(const std::string& name, std::vector<std::int64_t> ne, bool may_be_quantised) {
        PlannedTensor t{prefix_ + name, std::move(ne), may_be_quantised, {}};
        const std::int64_t n_slices = t.ne.size() == 3 ? t.ne[2] : 1;
        const std::int64_t n_slice = t.n_elems() / n_slices;
        for (int slice = 0; slice < n_slices; ++slice)
            t.runs.push_back({t.name, slice * n_slice, n_slice, slice});
        tensors_.push_back(std::move(t));
    }
    void matrix(const std::string& name, std::int64_t n_in, std::int64_t n_out) {
        add(name, {n_in, n_out}, true);
    }
    void matrix_free(const std::string& name, std::vector<std::int64_t> ne) {
        add(name, std::move(ne), false);
    }

    void attention() {
        const std::int64_t width = static_cast<std::int64_t>(s_.head_dim) * s_.n_head;
        const std::int64_t kv_width = static_cast<std::int64_t>(s_.head_dim) * s_.n_head_kv;
        matrix("attn_q.weight", s_.n_embd, 2 * width);  // each head: query, then output gate
        matrix("attn_k.weight", s_.n_embd, kv_width);
        matrix("attn_v.weight", s_.n_embd, kv_width);
        matrix_free("attn_q_norm.weight", {s_.head_dim});
        matrix_free("attn_k_norm.weight", {s_.head_dim});
        matrix("attn_output.weight", width, s_.n_embd);
    }

    void gated_delta_net() {
        matrix("attn_qkv.weight", s_.n_embd, s_.gdn_conv_dim());
        matrix("attn_gate.weight", s_.n_embd, s_.gdn_inner());
        matrix_free("ssm_conv1d.weight", {s_.gdn_d_conv, s_.gdn_conv_dim()});
        matrix_free("ssm_dt.bias", {s_.gdn_n_head_v});
        matrix_free("ssm_a", {s_.gdn_n_head_v});
        matrix("ssm_beta.weight", s_.n_embd, s_.gdn_n_head_v);
        matrix("ssm_alpha.weight", s_.n_embd, s_.gdn_n_head_v);
        matrix_free("ssm_norm.weight", {s_.gdn_head_dim});
        matrix("ssm_out.weight", s_.gdn_inner(), s_.n_embd);
    }

    void moe() {
        matrix_free("post_attention_norm.weight", {s_.n_embd});
        matrix_free("ffn_gate_inp.weight", {s_.n_embd, s_.n_expert});
        if (s_.fuses_gate_up) {
            fused_experts();
        } else {
            add("ffn_gate_exps.weight", {s_.n_embd, s_.n_ff_exp, s_.n_expert}, true);
            add("ffn_up_exps.weight", {s_.n_embd, s_.n_ff_exp, s_.n_expert}, true);
        }
        add("ffn_down_exps.weight", {s_.n_ff_exp, s_.n_embd, s_.n_expert}, true);
        matrix_free("ffn_gate_inp_shexp.weight", {s_.n_embd});
        matrix("ffn_gate_shexp.weight", s_.n_embd, s_.n_ff_shexp);
        matrix("ffn_up_shexp.weight", s_.n_embd, s_.n_ff_shexp);
        matrix("ffn_down_shexp.weight", s_.n_ff_shexp, s_.n_embd);
    }

    void fused_experts() {
        PlannedTensor t{prefix_ + "ffn_gate_up_exps.weight",
                        {s_.n_embd, 2 * static_cast<std::int64_t>(s_.n_ff_exp), s_.n_expert},
                        true,
                        {}};
        const std::int64_t n_half = static_cast<std::int64_t>(s_.n_embd) * s_.n_ff_exp;
        for (int e = 0; e < s_.n_expert; ++e) {
            t.runs.push_back({prefix_ + "ffn_gate_exps.weight", e * n_half, n_half, e});
            t.runs.push_back({prefix_ + "ffn_up_exps.weight", e * n_half, n_half, e});
        }
        tensors_.push_back(std::move(t));
    }

    void nextn_block() {
        prefix_ = "blk." + std::to_string(s_.n_layer) + ".";
        matrix_free("attn_norm.weight", {s_.n_embd});
        attention();
        moe();
        matrix("nextn.eh_proj.weight", 2 * static_cast<std::int64_t>(s_.n_embd), s_.n_embd);
        matrix_free("nextn.enorm.weight", {s_.n_embd});
        matrix_free("nextn.hnorm.weight", {s_.n_embd});
        matrix_free("nextn.shared_head_norm.weight", {s_.n_embd});
    }

    const ModelShape& s_;
    std::int64_t n_vocab_;
    std::string prefix_;
    std::vector<PlannedTensor> tensors_;
};

}  // namespace

std::int64_t PlannedTensor::n_elems() const {
    std::int64_t n = 1;
    for (const std::int64_t d : ne) n *= d;
    return n;
}

std::vector<PlannedTensor> plan_tensors(const ModelShape& shape, std::int64_t n_vocab) {
    return Planner(shape, n_vocab).plan();
}

}  // namespace pantheon::test

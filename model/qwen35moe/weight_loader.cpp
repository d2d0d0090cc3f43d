// Which tensors a qwen35moe file holds, under which names and shapes, and what to do with the variants of
// exporters.
#include <cmath>
#include <cstring>
#include <string>

#include "model/qwen35moe/tensor_finder.h"
#include "model/qwen35moe/weights.h"
#include "runtime/base/log.h"
#include "runtime/base/units.h"

namespace pantheon::model {

class WeightLoader {
  public:
    explicit WeightLoader(std::shared_ptr<const GgufFile> file) : file_(std::move(file)), find_(*file_) {}

    Result<std::shared_ptr<const Weights>> load() {
        auto config = read_config(
            file_->metadata(), [this](std::string_view name) { return file_->find_tensor(name) != nullptr; });
        if (!config) return std::move(config).error();
        std::shared_ptr<Weights> weights(new Weights);
        weights->file_ = file_;
        weights->config_ = std::move(*config);
        weights->layers_.resize(static_cast<std::size_t>(weights->config_.n_layer));

        find_globals(*weights);
        for (int i = 0; i < weights->config_.n_layer && !find_.error(); ++i) find_layer(*weights, i);
        if (find_.error()) return *find_.error();

        find_.read_vectors();
        if (Status ok = check_values(*weights); !ok) return std::move(ok).error();
        narrow_routers(*weights);
        take_stock(*weights);
        log_summary(*weights);
        return std::shared_ptr<const Weights>(std::move(weights));
    }

  private:
    void find_globals(Weights& weights) {
        const ModelConfig& config = weights.config_;
        const GgufTensor* embedding = file_->find_tensor("token_embd.weight");
        if (!embedding) return find_.fail(Code::data_loss, "token_embd.weight", "missing");
        const std::int64_t n_vocab = embedding->ne[1];
        auto tokens = file_->metadata().get_string_array("tokenizer.ggml.tokens");
        if (!tokens)
            return find_.fail(tokens.error().code(), "tokenizer.ggml.tokens", tokens.error().message());
        if (*tokens && static_cast<std::int64_t>((*tokens)->size()) != n_vocab)
            return find_.fail(Code::data_loss, "token_embd.weight",
                              std::to_string(n_vocab) + " rows for " + std::to_string((*tokens)->size()) +
                                  " entries of tokenizer.ggml.tokens");

        weights.token_embd_ = find_.matrix("token_embd.weight", n_vocab, config.n_embd);
        find_.vector("output_norm.weight", {config.n_embd}, weights.output_norm_);
        weights.is_head_tied_ = !find_.contains("output.weight");
        weights.head_ = weights.is_head_tied_ ? weights.token_embd_
                                              : find_.matrix("output.weight", n_vocab, config.n_embd);
    }

    void find_layer(Weights& weights, int i) {
        const ModelConfig& config = weights.config_;
        LayerWeights& layer = weights.layers_[static_cast<std::size_t>(i)];
        const std::string block = "blk." + std::to_string(i) + ".";
        find_.set_context("layer " + std::to_string(i));
        layer.kind = config.mixer[static_cast<std::size_t>(i)];
        find_.vector(block + "attn_norm.weight", {config.n_embd}, layer.mixer_norm);
        if (layer.kind == MixerKind::attention)
            find_attention(config, block, layer.attention);
        else
            find_gdn(config, block, layer.gdn);
        find_.vector(block + "post_attention_norm.weight", {config.n_embd}, layer.moe_norm);
        find_moe(config, block, layer.moe);
        find_.set_context("");
    }

    void find_attention(const ModelConfig& config, const std::string& block, AttentionWeights& attention) {
        const std::int64_t head_dim = config.head_dim;
        attention.q = find_.matrix(block + "attn_q.weight", 2 * head_dim * config.n_head, config.n_embd);
        attention.k = find_.matrix(block + "attn_k.weight", head_dim * config.n_head_kv, config.n_embd);
        attention.v = find_.matrix(block + "attn_v.weight", head_dim * config.n_head_kv, config.n_embd);
        attention.output =
            find_.matrix(block + "attn_output.weight", config.n_embd, head_dim * config.n_head);
        find_.vector(block + "attn_q_norm.weight", {head_dim}, attention.q_norm);
        find_.vector(block + "attn_k_norm.weight", {head_dim}, attention.k_norm);
    }

    void find_gdn(const ModelConfig& config, const std::string& block, GdnWeights& gdn) {
        const std::int64_t n_head_v = config.gdn_n_head_v;
        gdn.qkv = find_.matrix(block + "attn_qkv.weight", config.gdn_conv_dim(), config.n_embd);
        gdn.gate = find_.matrix(block + "attn_gate.weight", config.gdn_d_inner(), config.n_embd);
        gdn.beta = find_.matrix(block + "ssm_beta.weight", n_head_v, config.n_embd);
        gdn.alpha = find_.matrix(block + "ssm_alpha.weight", n_head_v, config.n_embd);
        gdn.output = find_.matrix(block + "ssm_out.weight", config.n_embd, config.gdn_d_inner());
        find_.vector(block + "ssm_conv1d.weight", {config.gdn_conv_dim(), config.gdn_d_conv}, gdn.conv);
        find_.vector(block + "ssm_a", {n_head_v}, gdn.a);
        // Older exporters leave the suffix out.
        const std::string dt = block + "ssm_dt";
        find_.vector(!find_.contains(dt + ".bias") && find_.contains(dt) ? dt : dt + ".bias", {n_head_v},
                     gdn.dt);
        find_.vector(block + "ssm_norm.weight", {config.gdn_head_dim}, gdn.norm);
    }

    void find_moe(const ModelConfig& config, const std::string& block, MoeWeights& moe) {
        const std::int64_t n_ff = config.n_ff_exp;
        moe.router = find_.matrix(block + "ffn_gate_inp.weight", config.n_expert, config.n_embd);
        const std::string fused = block + "ffn_gate_up_exps.weight";
        if (find_.contains(fused)) {
            // Per expert: the gate's rows, then the up projection's. Both views keep the whole expert's
            // stride.
            kernels::ExpertMatrices gate_up = find_.experts(fused, config.n_expert, 2 * n_ff, config.n_embd);
            gate_up.first.n_out = n_ff;
            moe.gate = moe.up = gate_up;
            moe.up.first.data += n_ff * gate_up.first.row_bytes;
        } else {
            moe.gate = find_.experts(block + "ffn_gate_exps.weight", config.n_expert, n_ff, config.n_embd);
            moe.up = find_.experts(block + "ffn_up_exps.weight", config.n_expert, n_ff, config.n_embd);
        }
        moe.down = find_.experts(block + "ffn_down_exps.weight", config.n_expert, config.n_embd, n_ff);
        moe.shared_router = find_.matrix(block + "ffn_gate_inp_shexp.weight", 1, config.n_embd);
        moe.shared_gate = find_.matrix(block + "ffn_gate_shexp.weight", config.n_ff_shexp, config.n_embd);
        moe.shared_up = find_.matrix(block + "ffn_up_shexp.weight", config.n_ff_shexp, config.n_embd);
        moe.shared_down = find_.matrix(block + "ffn_down_shexp.weight", config.n_embd, config.n_ff_shexp);
    }

    /// ssm_a holds −exp(A_log). Anything else makes a decay above 1: states that grow until they overflow.
    static Status check_values(const Weights& weights) {
        for (int i = 0; i < weights.n_layer(); ++i)
            for (const float a : weights.layer(i).gdn.a)
                if (!std::isfinite(a) || a >= 0)
                    return Error(Code::data_loss, "layer " + std::to_string(i) + ": blk." +
                                                      std::to_string(i) + ".ssm_a: " + std::to_string(a) +
                                                      " is not below 0");
        return {};
    }

    /// Exporters write the router as f32. Where it comes from a bf16 model the lower halves are all zero, and
    /// half of what every token reads of it need not be read.
    static void narrow_routers(Weights& weights) {
        for (LayerWeights& layer : weights.layers_) {
            kernels::WeightMatrix& router = layer.moe.router;
            if (router.type != kernels::WeightType::f32) continue;
            auto narrow = std::make_shared<std::vector<std::byte>>(
                static_cast<std::size_t>(router.n_in * router.n_out) * 2);
            if (!upper_halves(router, narrow->data())) continue;
            router.type = kernels::WeightType::bf16;
            router.row_bytes = 2 * router.n_in;
            router.data = narrow->data();
            weights.narrow_.push_back(std::move(narrow));
        }
    }
    /// False: some lower half is not zero.
    static bool upper_halves(const kernels::WeightMatrix& w, std::byte* out) {
        for (std::int64_t row = 0; row < w.n_out; ++row)
            for (std::int64_t i = 0; i < w.n_in; ++i, out += 2) {
                std::uint32_t bits;
                std::memcpy(&bits, w.row(row) + 4 * i, sizeof bits);
                if ((bits & 0xFFFFu) != 0) return false;
                const auto half = static_cast<std::uint16_t>(bits >> 16);
                std::memcpy(out, &half, sizeof half);
            }
        return true;
    }

    void take_stock(Weights& weights) {
        weights.weight_bytes_ = find_.used_bytes();
        weights.max_row_elems_ = find_.max_row_elems();
        const bool has_nextn = weights.config_.nextn.state == NextnInfo::State::present;
        for (const GgufTensor& tensor : file_->tensors()) {
            if (find_.is_used(tensor.name)) continue;
            if (has_nextn && is_beyond_trunk(tensor.name, weights.config_.n_layer)) {
                ++weights.n_nextn_tensors_;
                weights.nextn_bytes_ += tensor.n_bytes;
            } else {
                weights.unused_tensors_.push_back(tensor.name);
            }
        }
    }

    /// blk.N.… with N ≥ n_layer
    static bool is_beyond_trunk(const std::string& name, int n_layer) {
        constexpr std::string_view kBlock = "blk.";
        if (!name.starts_with(kBlock)) return false;
        int block = 0;
        std::size_t i = kBlock.size();
        for (; i < name.size() && name[i] >= '0' && name[i] <= '9' && block < 100000; ++i)
            block = block * 10 + (name[i] - '0');
        return i > kBlock.size() && i < name.size() && name[i] == '.' && block >= n_layer;
    }

    static void log_summary(const Weights& weights) {
        log_info("model", std::to_string(weights.n_layer()) + " layers, " +
                              format_bytes(weights.weight_bytes()) + " of weights; " +
                              weights.nextn().describe());
        const std::vector<std::string>& unused = weights.unused_tensors();
        if (!unused.empty())
            log_warning("model",
                        std::to_string(unused.size()) + " unused tensors, the first is " + unused.front());
    }

    std::shared_ptr<const GgufFile> file_;
    TensorFinder find_;
};

Result<std::shared_ptr<const Weights>> Weights::load(std::shared_ptr<const GgufFile> file) {
    return WeightLoader(std::move(file)).load();
}

}  // namespace pantheon::model

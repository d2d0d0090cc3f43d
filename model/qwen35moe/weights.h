// The tensors of a qwen35moe model under the names of the model's parts: found, checked against the metadata,
// and used where the file has them. Only vectors (norms, gates, convolution taps) are copied.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/linear/weight_matrix.h"
#include "model/gguf/gguf_file.h"
#include "model/qwen35moe/config.h"
#include "runtime/base/status.h"

namespace pantheon::model {

struct AttentionWeights {
    kernels::WeightMatrix q;  // per head: head_dim query rows, then head_dim rows of the output gate
    kernels::WeightMatrix k, v, output;
    std::vector<float> q_norm, k_norm;  // [head_dim]
};

struct GdnWeights {
    kernels::WeightMatrix qkv;   // rows: all q heads, all k heads, all v heads
    kernels::WeightMatrix gate;  // z
    kernels::WeightMatrix beta, alpha, output;
    std::vector<float> conv;  // [gdn_conv_dim, gdn_d_conv]
    std::vector<float> a;     // [gdn_n_head_v], −exp(A_log), < 0
    std::vector<float> dt;    // [gdn_n_head_v]
    std::vector<float> norm;  // [gdn_head_dim]
};

struct MoeWeights {
    kernels::WeightMatrix router;            // bf16 where the file has f32 that says no more
    kernels::ExpertMatrices gate, up, down;  // gate and up may be two halves of one fused tensor
    kernels::WeightMatrix shared_router;     // one row: the shared expert's gate
    kernels::WeightMatrix shared_gate, shared_up, shared_down;
};

struct LayerWeights {
    std::vector<float> mixer_norm;  // [n_embd]
    MixerKind kind = MixerKind::gdn;
    AttentionWeights attention;   // filled when kind is attention
    GdnWeights gdn;               // filled when kind is gdn
    std::vector<float> moe_norm;  // [n_embd], GGUF's post_attention_norm: applied before the experts
    MoeWeights moe;
};

class Weights {
  public:
    /// Checks every tensor (present, shape, type) before it allocates anything; the file stays mapped as long
    /// as the weights live. Errors name layer and tensor; invalid_argument: the metadata, data_loss: missing
    /// or misshapen, unimplemented: a type or a companion tensor that this build cannot compute with.
    static Result<std::shared_ptr<const Weights>> load(std::shared_ptr<const GgufFile> file);

    const ModelConfig& config() const { return config_; }
    const GgufFile& file() const { return *file_; }
    std::int64_t n_vocab() const { return token_embd_.n_out; }
    int n_layer() const { return config_.n_layer; }
    int n_embd() const { return config_.n_embd; }
    const std::string& name() const { return config_.name; }
    const NextnInfo& nextn() const { return config_.nextn; }

    const kernels::WeightMatrix& token_embd() const { return token_embd_; }
    const kernels::WeightMatrix& head() const { return head_; }
    bool is_head_tied() const { return is_head_tied_; }
    std::span<const float> output_norm() const { return output_norm_; }
    const LayerWeights& layer(int i) const { return layers_[static_cast<std::size_t>(i)]; }

    /// Bytes in the file of the tensors that a step may read, and of those of the nextn block.
    std::uint64_t weight_bytes() const { return weight_bytes_; }
    std::uint64_t nextn_bytes() const { return nextn_bytes_; }
    int n_nextn_tensors() const { return n_nextn_tensors_; }
    /// Tensors that are neither used nor part of the nextn block, in file order.
    const std::vector<std::string>& unused_tensors() const { return unused_tensors_; }
    /// Scratch that the widest matrix needs, in elements of a row.
    std::int64_t max_row_elems() const { return max_row_elems_; }

    /// Shows every matrix that a product reads (so not the embedding, unless the head is tied to it) and
    /// every set of experts, in the order in which a step reads them.
    template <class MatrixFn, class ExpertsFn>
    void visit_products(MatrixFn&& matrix, ExpertsFn&& experts) {
        for (LayerWeights& layer : layers_) {
            if (layer.kind == MixerKind::attention) {
                for (kernels::WeightMatrix* w :
                     {&layer.attention.q, &layer.attention.k, &layer.attention.v, &layer.attention.output})
                    matrix(*w);
            } else {
                for (kernels::WeightMatrix* w :
                     {&layer.gdn.qkv, &layer.gdn.gate, &layer.gdn.beta, &layer.gdn.alpha, &layer.gdn.output})
                    matrix(*w);
            }
            MoeWeights& moe = layer.moe;
            for (kernels::WeightMatrix* w :
                 {&moe.router, &moe.shared_router, &moe.shared_gate, &moe.shared_up, &moe.shared_down})
                matrix(*w);
            for (kernels::ExpertMatrices* w : {&moe.gate, &moe.up, &moe.down}) experts(*w);
        }
        matrix(head_);
    }

    /// A second view of the same file, whose matrices may be given panels.
    std::shared_ptr<Weights> copy() const { return std::shared_ptr<Weights>(new Weights(*this)); }

  private:
    friend class WeightLoader;
    Weights() = default;
    Weights(const Weights&) = default;

    std::shared_ptr<const GgufFile> file_;
    ModelConfig config_;
    kernels::WeightMatrix token_embd_;
    kernels::WeightMatrix head_;
    bool is_head_tied_ = false;
    std::vector<float> output_norm_;
    std::vector<LayerWeights> layers_;
    std::vector<std::shared_ptr<const std::vector<std::byte>>>
        narrow_;  // what routers point to that are not the file's
    std::uint64_t weight_bytes_ = 0;
    std::uint64_t nextn_bytes_ = 0;
    int n_nextn_tensors_ = 0;
    std::vector<std::string> unused_tensors_;
    std::int64_t max_row_elems_ = 0;
};

}  // namespace pantheon::model

#include "tests/model/qwen35moe/double_model.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace pantheon::test {
namespace {

using Size = std::size_t;

double sigmoid(double x) {
    return 1 / (1 + std::exp(-x));
}
double silu(double x) {
    return x * sigmoid(x);
}

/// x / rms(x) · w over n values starting at `at`
Doubles rms(const Doubles& x, Size at, Size n, const std::vector<float>& w) {
    double squares = 0;
    for (Size i = 0; i < n; ++i) squares += x[at + i] * x[at + i];
    const double root = std::sqrt(squares / static_cast<double>(n) + static_cast<double>(1e-6f));
    Doubles y(n);
    for (Size i = 0; i < n; ++i) y[i] = x[at + i] / root * w[i];
    return y;
}

class Model {
  public:
    explicit Model(const TinyModel& model) : s_(model.shape) {
        for (const TinyTensor& tensor : model.tensors) values_[tensor.name] = tensor.values;
        layers_.resize(static_cast<Size>(s_.n_layer));
        for (Layer& layer : layers_) {
            layer.history.resize(static_cast<Size>(s_.conv_dim()), Doubles(static_cast<Size>(s_.d_conv - 1)));
            layer.state.resize(static_cast<Size>(s_.gdn_n_head_v * s_.gdn_head_dim * s_.gdn_head_dim));
        }
    }

    DoubleTrace run(const std::vector<std::int32_t>& tokens) {
        DoubleTrace trace;
        trace.after_block.resize(layers_.size());
        trace.experts.resize(layers_.size());
        for (Size pos = 0; pos < tokens.size(); ++pos) {
            const auto& embd = values("token_embd.weight");
            Doubles x(width());
            for (Size i = 0; i < width(); ++i) x[i] = embd[static_cast<Size>(tokens[pos]) * width() + i];
            for (Size l = 0; l < layers_.size(); ++l) {
                block_ = "blk." + std::to_string(l) + ".";
                const Doubles h = rms(x, 0, width(), values(block_ + "attn_norm.weight"));
                add(x, s_.is_attention(static_cast<int>(l))
                           ? attention(layers_[l], h, static_cast<double>(pos))
                           : gdn(layers_[l], h));
                const Doubles y = rms(x, 0, width(), values(block_ + "post_attention_norm.weight"));
                std::vector<int> picked;
                add(x, moe(y, picked));
                trace.after_block[l].push_back(x);
                trace.experts[l].push_back(picked);
            }
            trace.post_norm.push_back(rms(x, 0, width(), values("output_norm.weight")));
            trace.logits.push_back(
                times(s_.is_tied ? "token_embd.weight" : "output.weight", trace.post_norm.back()));
        }
        for (Size l = 0; l < layers_.size(); ++l) {
            if (s_.is_attention(static_cast<int>(l))) continue;
            Doubles conv;
            for (const Doubles& channel : layers_[l].history)
                conv.insert(conv.end(), channel.begin(), channel.end());
            trace.conv.push_back(conv);
            trace.state.push_back(layers_[l].state);
        }
        return trace;
    }

  private:
    struct Layer {
        std::vector<Doubles> k, v;     // [pos], all KV heads
        std::vector<Doubles> history;  // [channel], oldest first
        Doubles state;                 // [v head][v][k]
    };

    Size width() const { return static_cast<Size>(s_.n_embd); }
    const std::vector<float>& values(const std::string& name) const { return values_.at(name); }

    static void add(Doubles& x, const Doubles& y) {
        for (Size i = 0; i < x.size(); ++i) x[i] += y[i];
    }

    /// W x; rows [first, first + n) of the tensor, all of them when n is 0
    Doubles times(const std::string& name, const Doubles& x, Size first = 0, Size n = 0) const {
        const auto& w = values(name);
        if (n == 0) n = w.size() / x.size();
        Doubles y(n);
        for (Size o = 0; o < n; ++o)
            for (Size i = 0; i < x.size(); ++i)
                y[o] += static_cast<double>(w[(first + o) * x.size() + i]) * x[i];
        return y;
    }

    void rotate(Doubles& head, double pos) const {
        const int n_pairs = s_.rope_dim / 2;
        std::array<int, 4> sec{};
        std::copy(s_.sections.begin(), s_.sections.end(), sec.begin());
        for (int i = 0; i < n_pairs; ++i) {
            const int sector = i % (sec[0] + sec[1] + sec[2] + sec[3]);
            const bool is_height = sector % 3 == 1 && sector < 3 * sec[1];
            const bool is_width = sector % 3 == 2 && sector < 3 * sec[2];
            const bool is_time = sector % 3 == 0 && sector < 3 * sec[0];
            const double stream = is_height || is_width || is_time ? pos : 0;
            const double theta = stream / static_cast<float>(s_.rope_factor) *
                                 std::pow(static_cast<float>(s_.freq_base), -2.0 * i / s_.rope_dim);
            double& a = head[static_cast<Size>(i)];
            double& b = head[static_cast<Size>(i + n_pairs)];
            const double turned_a = a * std::cos(theta) - b * std::sin(theta);
            b = a * std::sin(theta) + b * std::cos(theta);
            a = turned_a;
        }
    }

    Doubles attention(Layer& layer, const Doubles& h, double pos) const {
        const Size hd = static_cast<Size>(s_.head_dim);
        const Size n_kv = static_cast<Size>(s_.n_head_kv);
        const Size group = static_cast<Size>(s_.n_head / s_.n_head_kv);
        const Doubles qg = times(block_ + "attn_q.weight", h);
        const Doubles k_raw = times(block_ + "attn_k.weight", h);
        layer.v.push_back(times(block_ + "attn_v.weight", h));
        Doubles k_all;
        for (Size g = 0; g < n_kv; ++g) {
            Doubles k = rms(k_raw, g * hd, hd, values(block_ + "attn_k_norm.weight"));
            rotate(k, pos);
            k_all.insert(k_all.end(), k.begin(), k.end());
        }
        layer.k.push_back(k_all);

        Doubles out;
        for (Size head = 0; head < static_cast<Size>(s_.n_head); ++head) {
            Doubles q = rms(qg, head * 2 * hd, hd, values(block_ + "attn_q_norm.weight"));
            rotate(q, pos);
            const Size kv = head / group * hd;
            Doubles p(layer.k.size());
            for (Size r = 0; r < p.size(); ++r) {
                for (Size i = 0; i < hd; ++i) p[r] += q[i] * layer.k[r][kv + i];
                p[r] = p[r] / std::sqrt(static_cast<double>(hd));
            }
            const double top = *std::max_element(p.begin(), p.end());
            double sum = 0;
            for (double& value : p) sum += value = std::exp(value - top);
            for (Size i = 0; i < hd; ++i) {
                double o = 0;
                for (Size r = 0; r < p.size(); ++r) o += p[r] / sum * layer.v[r][kv + i];
                out.push_back(o * sigmoid(qg[head * 2 * hd + hd + i]));
            }
        }
        return times(block_ + "attn_output.weight", out);
    }

    Doubles gdn(Layer& layer, const Doubles& h) const {
        const Size d = static_cast<Size>(s_.gdn_head_dim);
        const Size n_k = static_cast<Size>(s_.gdn_n_head_k);
        const Size taps = static_cast<Size>(s_.d_conv);
        const Doubles u = times(block_ + "attn_qkv.weight", h);
        const Doubles z = times(block_ + "attn_gate.weight", h);
        const Doubles b = times(block_ + "ssm_beta.weight", h);
        const Doubles a = times(block_ + "ssm_alpha.weight", h);
        const auto& conv = values(block_ + "ssm_conv1d.weight");
        Doubles y(u.size());
        for (Size c = 0; c < u.size(); ++c) {
            Doubles& window = layer.history[c];
            window.push_back(u[c]);
            for (Size t = 0; t < taps; ++t) y[c] += window[t] * conv[c * taps + t];
            y[c] = silu(y[c]);
            window.erase(window.begin());
        }
        for (Size head = 0; head < 2 * n_k; ++head) {
            double squares = 0;
            for (Size i = 0; i < d; ++i) squares += y[head * d + i] * y[head * d + i];
            for (Size i = 0; i < d; ++i) y[head * d + i] /= std::max(std::sqrt(squares), 1e-6);
        }
        Doubles out;
        for (Size v = 0; v < static_cast<Size>(s_.gdn_n_head_v); ++v) {
            const double* q = &y[v % n_k * d];
            const double* k = &y[(n_k + v % n_k) * d];
            const double* value = &y[(2 * n_k + v) * d];
            const double beta = sigmoid(b[v]);
            const double decay = std::exp(values(block_ + "ssm_a")[v] *
                                          std::log(1 + std::exp(a[v] + values(block_ + "ssm_dt.bias")[v])));
            double* state = &layer.state[v * d * d];  // [j: value][i: key]
            Doubles o(d);
            for (Size j = 0; j < d; ++j) {
                double prediction = 0;
                for (Size i = 0; i < d; ++i) prediction += (state[j * d + i] *= decay) * k[i];
                for (Size i = 0; i < d; ++i) {
                    state[j * d + i] += k[i] * beta * (value[j] - prediction);
                    o[j] += state[j * d + i] * q[i] / std::sqrt(static_cast<double>(d));
                }
            }
            const Doubles normed = rms(o, 0, d, values(block_ + "ssm_norm.weight"));
            for (Size j = 0; j < d; ++j) out.push_back(normed[j] * silu(z[v * d + j]));
        }
        return times(block_ + "ssm_out.weight", out);
    }

    Doubles swiglu(Doubles gate, const Doubles& up) const {
        for (Size i = 0; i < gate.size(); ++i) gate[i] = silu(gate[i]) * up[i];
        return gate;
    }

    Doubles moe(const Doubles& y, std::vector<int>& picked) const {
        Doubles p = times(block_ + "ffn_gate_inp.weight", y);
        double sum = 0;
        for (double& value : p) sum += value = std::exp(value);
        double picked_sum = 0;
        for (int rank = 0; rank < s_.n_expert_used; ++rank) {
            int best = -1;
            for (int e = 0; e < s_.n_expert; ++e)
                if (std::find(picked.begin(), picked.end(), e) == picked.end() &&
                    (best < 0 || p[static_cast<Size>(e)] > p[static_cast<Size>(best)]))
                    best = e;
            picked.push_back(best);
            picked_sum += p[static_cast<Size>(best)];
        }
        Doubles out(width());
        const Size ff = static_cast<Size>(s_.n_ff_exp);
        for (const int expert : picked) {
            const Size e = static_cast<Size>(expert);
            const std::string fused = block_ + "ffn_gate_up_exps.weight";
            const Doubles gate = s_.is_fused ? times(fused, y, e * 2 * ff, ff)
                                             : times(block_ + "ffn_gate_exps.weight", y, e * ff, ff);
            const Doubles up = s_.is_fused ? times(fused, y, e * 2 * ff + ff, ff)
                                           : times(block_ + "ffn_up_exps.weight", y, e * ff, ff);
            const Doubles down =
                times(block_ + "ffn_down_exps.weight", swiglu(gate, up), e * width(), width());
            for (Size i = 0; i < width(); ++i) out[i] += p[e] / picked_sum * down[i];
        }
        const double shared_weight = sigmoid(times(block_ + "ffn_gate_inp_shexp.weight", y)[0]);
        const Doubles shared = times(
            block_ + "ffn_down_shexp.weight",
            swiglu(times(block_ + "ffn_gate_shexp.weight", y), times(block_ + "ffn_up_shexp.weight", y)));
        for (Size i = 0; i < width(); ++i) out[i] += shared_weight * shared[i];
        return out;
    }

    TinyShape s_;
    std::map<std::string, std::vector<float>> values_;
    std::vector<Layer> layers_;
    std::string block_;  // the prefix of the current layer's tensors
};

}  // namespace

DoubleTrace run_in_double(const TinyModel& model, const std::vector<std::int32_t>& tokens) {
    return Model(model).run(tokens);
}

}  // namespace pantheon::test

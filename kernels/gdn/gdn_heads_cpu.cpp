#include "kernels/gdn/gdn_heads.h"

#include <algorithm>

#include "kernels/cpu/leaves.h"
#include "kernels/gdn/gdn_gates.h"

namespace pantheon::kernels {
namespace {

// Their q, k and v stay in the second cache while the state's rows pass, a few at a time, through the first.
constexpr int kTokensAtOnce = 32;

/// One K head and the V heads that read it.
class HeadGroup {
  public:
    HeadGroup(const Leaves& leaves, const GdnHeadsRun& run, const GdnHeadsInputs& in, int k_head,
              float* local, float* y)
        : leaves_(leaves),
          run_(run),
          in_(in),
          k_head_(k_head),
          n_v_(in.n_head_v / in.n_head_k),
          stride_(static_cast<std::int64_t>(2 + n_v_) * in.head_dim),
          local_(local),
          y_(y) {}

    void advance() {
        for (int t = 0; t < run_.n_rows; t += kTokensAtOnce)
            advance_some(run_.first_row + t, std::min(kTokensAtOnce, run_.n_rows - t));
    }

  private:
    /// Interleaved pairing. Blocked pairing, k_head · n_v + i, gives fluent but wrong text.
    int v_head(int i) const { return k_head_ + i * in_.n_head_k; }

    void advance_some(std::int64_t row, int n) {
        const int d = in_.head_dim;
        // Rows of the local buffer: q, k, and v of each V head, after the convolution.
        convolve(row, n, k_head_, 0);
        convolve(row, n, in_.n_head_k + k_head_, 1);
        for (int i = 0; i < n_v_; ++i) convolve(row, n, 2 * in_.n_head_k + v_head(i), 2 + i);
        for (int t = 0; t < n; ++t)
            for (int part = 0; part < 2; ++part) leaves_.l2_norm(local_ + t * stride_ + part * d, d, in_.eps);

        for (int i = 0; i < n_v_; ++i) {
            const int h = v_head(i);
            float beta[kTokensAtOnce], g[kTokensAtOnce];
            for (int t = 0; t < n; ++t) {
                const std::int64_t at = (row + t) * in_.n_head_v + h;
                gdn_gates_of_head_cpu(in_.b[at], in_.alpha[at], in_.a[h], in_.dt[h], beta[t], g[t]);
            }
            DeltaRuleToken tokens[kTokensAtOnce];
            leaves_.delta_rule_tokens(local_, local_ + d, stride_, d, g, beta, 1, n, tokens);
            DeltaRuleSlice slice;
            slice.head_dim = d;
            slice.n_tokens = n;
            slice.q = local_;
            slice.k = local_ + d;
            slice.qkv_stride = stride_;
            slice.tokens = tokens;
            slice.y_stride = static_cast<std::int64_t>(in_.n_head_v) * d;
            const std::int64_t out = (row * in_.n_head_v + h) * d;
            for (int first = 0; first < d; first += DeltaRuleSlice::kMaxRows) {
                slice.state = run_.state.row(h, first);
                slice.n_rows = std::min(DeltaRuleSlice::kMaxRows, d - first);
                slice.v = local_ + (2 + i) * d + first;
                slice.y = y_ + out + first;
                leaves_.delta_rule(slice);
            }
            for (int t = 0; t < n; ++t)
                leaves_.gated_rms_norm(y_ + out + t * slice.y_stride, in_.z + out + t * slice.y_stride,
                                       in_.norm, d, in_.eps);
        }
    }

    void convolve(std::int64_t row, int n, int head, int part) {
        const std::int64_t channel = static_cast<std::int64_t>(head) * in_.head_dim;
        leaves_.causal_conv({in_.head_dim, in_.u + row * in_.conv_dim() + channel,
                             in_.conv + channel * in_.d_conv, run_.conv_state + channel * (in_.d_conv - 1),
                             local_ + static_cast<std::int64_t>(part) * in_.head_dim, in_.conv_dim(), stride_,
                             n, in_.d_conv});
    }

    const Leaves& leaves_;
    const GdnHeadsRun& run_;
    const GdnHeadsInputs& in_;
    int k_head_;
    int n_v_;
    std::int64_t stride_;
    float* local_;
    float* y_;
};

std::size_t local_floats(int n_head_k, int n_head_v, int head_dim) {
    return static_cast<std::size_t>(2 + n_head_v / n_head_k) * static_cast<std::size_t>(head_dim) *
           kTokensAtOnce;
}

}  // namespace

std::size_t gdn_heads_scratch_bytes(int n_head_k, int n_head_v, int head_dim) {
    return local_floats(n_head_k, n_head_v, head_dim) * sizeof(float);
}

void gdn_heads_cpu(Exec& exec, const GdnHeadsRun* runs, int n_runs, const GdnHeadsInputs& in,
                   const GdnHeadsWork&, float* y) {
    const Leaves& leaves = cpu_leaves(exec.isa());
    const std::size_t n_local = local_floats(in.n_head_k, in.n_head_v, in.head_dim);
    exec.team().parallel_for(static_cast<std::int64_t>(n_runs) * in.n_head_k, 1,
                             [&](int thread, std::int64_t begin, std::int64_t end) {
                                 for (std::int64_t item = begin; item < end; ++item)
                                     HeadGroup(leaves, runs[item / in.n_head_k], in,
                                               static_cast<int>(item % in.n_head_k),
                                               exec.scratch<float>(thread, n_local), y)
                                         .advance();
                             });
}

}  // namespace pantheon::kernels

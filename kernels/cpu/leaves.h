// The inner loops of the cpu backend: one table of plain functions per instruction set. The ops (*_cpu.cpp)
// divide the work and call these; a leaf knows no threads and no scratch. Both tables give the same bits,
// because both are built from the same bodies (kernels/cpu/*_body.h) or compute exact integers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention/kv_view.h"
#include "kernels/cpu/isa.h"
#include "kernels/linear/weight_panels.h"
#include "kernels/quant/weight_type.h"

namespace pantheon::kernels {

/// One input row in the form that a weight type meets: x for float weights, the rest for quantised ones,
/// whose blocks are 256 or 32 wide (quant_width). q[i] · d[i / width] stands for x[i].
struct Column {
    const float* x = nullptr;
    const std::int8_t* q = nullptr;
    const float* d = nullptr;            // per block
    const std::int16_t* sums = nullptr;  // of q: kSumsPer256 for a block of 256, one for a block of 32
};
/// Sums of 16 values each, then of 32 each.
constexpr int kSumsPer256 = 16 + 8;
constexpr int kMaxColumns = 8;

/// y[c][r] = row r of the weights · column c, for n_rows ≥ 1 rows row_bytes apart and 1 … kMaxColumns
/// columns. Quantised weights: per block of the weight type the integer sum is exact; blocks are added in
/// order by fused multiply-adds in f32. Float weights: eight f32 sums, element i in sum i mod 8, then a fixed
/// tree. So y[c][r] has the same bits whatever n_rows, n_columns and the neighbours are.
using DotRows = void(const std::byte* w, std::int64_t row_bytes, int n_rows, std::int64_t n_in,
                     const Column* columns, int n_columns, float* const* y);

/// The same results from packed panels (kernels/linear/weight_panels.h), for n_rows ≥ 1 rows in consecutive
/// panels and 1 … kMaxPanelColumns columns; the same bits as DotRows.
constexpr int kMaxPanelColumns = 8;
using DotPanels = void(const std::byte* panels, const PanelLayout& layout, std::int64_t n_rows,
                       const Column* columns, int n_columns, float* const* y);

/// q, sums and d of n values, n a multiple of the width: q = 127 x / max |x| rounded half to even, and
/// d = Σ x q / Σ q², the scale with the least squared error for these q. (With max |x| / 127 the error of a
/// block of 32 is 3 % larger.) A block of (almost) zeros has d = 0; one with a value that is not finite, NaN.
using Quantise = void(const float* x, std::int64_t n, std::int8_t* q, std::int16_t* sums, float* d);

/// What a token brings to all state rows of a V head.
struct DeltaRuleToken {
    float decay, beta;
    float kq;  // k · q of its K head
};

/// Up to kMaxRows state rows of one head over a run of tokens; see gated_delta_rule.h.
struct DeltaRuleSlice {
    static constexpr int kMaxRows = 16;
    float* state;  // [n_rows, head_dim]
    int n_rows, head_dim, n_tokens;
    const float *q, *k;       // of token 0
    const float* v;           // of token 0 and the first row
    std::int64_t qkv_stride;  // floats between tokens
    const DeltaRuleToken* tokens;
    float* y;               // of token 0 and the first row
    std::int64_t y_stride;  // floats between tokens
};

constexpr int kAttentionTileRows = 16;  // of K that are unpacked at once

inline int padded_head_dim(int head_dim) {
    return (head_dim + kKvBlock - 1) / kKvBlock * kKvBlock;
}
/// Working memory of attend_page: unpacked rows of K, then columns of V.
inline std::size_t attention_tile_floats(int head_dim) {
    constexpr int kColumns = kKvPageRows * kKvBlock;
    const int rows = kAttentionTileRows * padded_head_dim(head_dim);
    return static_cast<std::size_t>(rows > kColumns ? rows : kColumns);
}

/// Four queries of one token that read the same KV head (with fewer, some stand there more than once), and
/// what the rows so far have given.
struct QueryQuad {
    static constexpr int kSize = 4;
    const float* q[kSize];
    float* sum;     // [kSize, padded_head_dim]: Σ weight · V
    float* scores;  // [kSize, kKvPageRows]: working memory
    float max[kSize];
    float weight[kSize];  // Σ weight, relative to max
    int n_rows;           // of the page at hand: it reads the first ones of the stretches
};

/// Channels [0, n) of a causal convolution; see causal_conv.h.
struct ConvChannels {
    std::int64_t n;
    const float* u;
    const float* w;
    float* state;
    float* y;
    std::int64_t u_stride, y_stride;  // floats between rows
    int n_rows, d_conv;
};

struct Leaves {
    DotRows* (*dot_rows)(WeightType type);
    DotPanels* (*dot_panels)(WeightType type);  // null for types without panels; no type has them in scalar
    Quantise* quantise_256;
    Quantise* quantise_32;
    void (*rms_norm)(const float* x, const float* w, float* y, int n, float eps);
    void (*l2_norm)(float* x, int n, float eps);
    void (*gated_rms_norm)(float* y, const float* z, const float* w, int n, float eps);
    void (*swiglu)(const float* gate, const float* up, float* y, std::int64_t n);
    void (*output_gate)(float* y, const float* gate, std::int64_t n);
    /// Turns x[i] and x[i + n_pairs] by the angle whose cosine and sine are given.
    void (*rotate)(float* x, const float* cosine, const float* sine, int n_pairs);
    /// y[i] = exp(x[i] − shift)
    void (*exp_minus)(const float* x, float shift, float* y, std::int64_t n);
    /// y[i] = base[i] + (Σ_j weights[j] · routed[j][i] + sigmoid(gate) · shared[i]), or without base if that
    /// is null; rows of routed stride floats apart. y may be base.
    void (*moe_combine)(const float* routed, std::int64_t stride, const float* weights, int n_used,
                        const float* shared, float gate, const float* base, float* y, std::int64_t n);
    /// The greatest of n ≥ 1 values; NaN when one is infinite or NaN.
    float (*finite_max)(const float* x, std::int64_t n);
    void (*causal_conv)(const ConvChannels& channels);
    /// exp(g) and k · q of n tokens; g, beta gate_stride and q, k stride floats apart.
    void (*delta_rule_tokens)(const float* q, const float* k, std::int64_t stride, int head_dim,
                              const float* g, const float* beta, std::int64_t gate_stride, int n,
                              DeltaRuleToken* tokens);
    void (*delta_rule)(const DeltaRuleSlice& slice);
    /// Takes up the rows of one page, all stretches together at most kKvPageRows. What becomes of a quad does
    /// not depend on the others. tile: attention_tile_floats
    void (*attend_page)(const KvStretch* stretches, int n_stretches, int head_dim, QueryQuad* quads,
                        int n_quads, float* tile);
    /// The same queries over more rows: `into` becomes what both have given together.
    void (*merge_quad)(const QueryQuad& more, int head_dim, QueryQuad& into);
    /// See half_values.h.
    void (*narrow_to_half)(const float* x, std::uint16_t* y, std::int64_t n);
    void (*widen_half)(const std::uint16_t* x, float* y, std::int64_t n);
};

/// Scalar exists everywhere; the others only in builds for x86-64.
const Leaves& cpu_leaves(CpuIsa isa);

/// Width of the activation blocks that meet this type: 256, 32, or 0 for float weights (f32 activations).
int quant_width(WeightType type);

}  // namespace pantheon::kernels

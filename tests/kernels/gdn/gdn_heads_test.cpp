#include "kernels/gdn/gdn_heads.h"

#include "kernels/gdn/causal_conv.h"
#include "kernels/gdn/gated_rms_norm.h"
#include "kernels/gdn/gdn_gates.h"
#include "kernels/norm/l2_norm.h"
#include "tests/kernels/kernel_test.h"

namespace pantheon::kernels::test {
namespace {

std::size_t size(std::int64_t n) {
    return static_cast<std::size_t>(n);
}

struct HeadsCase {
    const char* name;
    int n_head_k, n_head_v, head_dim, d_conv;
    std::vector<int> lengths;  // of the runs
};
const HeadsCase kCases[] = {
    {"decode", 2, 4, 16, 4, {1}},
    {"three_groups", 3, 9, 8, 4, {5}},
    {"equal_heads", 3, 3, 10, 3, {2, 4}},
    {"batch", 2, 4, 16, 4, {1, 6, 1}},
    {"more_tokens_than_are_taken_at_once", 2, 4, 24, 4, {100, 33}},
};

/// The ops that the fused one stands for.
struct SingleOps {
    CausalConv* conv;
    L2Norm* l2_norm;
    GdnGates* gates;
    GatedDeltaRule* rule;
    GatedRmsNorm* norm;
};

struct HeadsData {
    const HeadsCase& c;
    int n_rows = 0;
    std::vector<float> u, z, b, alpha, conv, a, dt, norm, conv_state, state;
    GdnHeadsInputs in;

    explicit HeadsData(const HeadsCase& tested) : c(tested) {
        for (const int n : c.lengths) n_rows += n;
        in.n_head_k = c.n_head_k, in.n_head_v = c.n_head_v, in.head_dim = c.head_dim, in.d_conv = c.d_conv;
        in.eps = 1e-6f;
        const std::int64_t n_runs = static_cast<std::int64_t>(c.lengths.size());
        u = random_values(size(n_rows * in.conv_dim()), 1, -2, 2);
        z = random_values(size(n_rows * c.n_head_v * c.head_dim), 2, -2, 2);
        b = random_values(size(n_rows * c.n_head_v), 3, -2, 2);
        alpha = random_values(b.size(), 4, -2, 2);
        conv = random_values(size(in.conv_dim() * c.d_conv), 5);
        a = random_values(size(c.n_head_v), 6, -2, -0.1);
        dt = random_values(size(c.n_head_v), 7);
        norm = random_values(size(c.head_dim), 8, 0.5, 1.5);
        conv_state = random_values(size(n_runs * in.conv_dim() * (c.d_conv - 1)), 9);
        state = random_values(size(n_runs * c.n_head_v * c.head_dim * c.head_dim), 10, -0.5, 0.5);
        in.u = u.data(), in.z = z.data(), in.b = b.data(), in.alpha = alpha.data();
        in.conv = conv.data(), in.a = a.data(), in.dt = dt.data(), in.norm = norm.data();
    }

    std::vector<GdnHeadsRun> runs(float* conv_states, float* states) const {
        std::vector<GdnHeadsRun> runs;
        int row = 0;
        for (std::size_t s = 0; s < c.lengths.size(); row += c.lengths[s++])
            runs.push_back({row,
                            c.lengths[s],
                            conv_states + s * size(in.conv_dim() * (c.d_conv - 1)),
                            {states + s * size(c.n_head_v * c.head_dim * c.head_dim), c.head_dim}});
        return runs;
    }

    /// y, then both states.
    std::vector<float> one_op_at_a_time(Exec& exec, const SingleOps& ops) const {
        std::vector<float> qkv(u.size()), beta(b.size()), g(b.size()), y(z.size());
        std::vector<float> conv_states = conv_state, states = state;
        std::vector<ConvRun> conv_runs;
        std::vector<GdnRun> rule_runs;
        for (const GdnHeadsRun& run : runs(conv_states.data(), states.data())) {
            conv_runs.push_back({run.first_row, run.n_rows, run.conv_state});
            rule_runs.push_back({run.first_row, run.n_rows, run.state});
        }
        const int n_runs = static_cast<int>(conv_runs.size());
        const std::int64_t d_key = static_cast<std::int64_t>(c.n_head_k) * c.head_dim;
        ops.gates(exec, in.b, in.alpha, in.a, in.dt, beta.data(), g.data(), n_rows, c.n_head_v);
        ops.conv(exec, conv_runs.data(), n_runs, in.u, in.conv, qkv.data(), in.conv_dim(), c.d_conv);
        ops.l2_norm(exec, qkv.data(), in.conv_dim(), n_rows, 2 * c.n_head_k, c.head_dim, in.eps);
        GdnInputs rule;
        rule.q = qkv.data(), rule.k = qkv.data() + d_key, rule.v = qkv.data() + 2 * d_key;
        rule.qkv_stride = in.conv_dim();
        rule.g = g.data(), rule.beta = beta.data();
        rule.n_head_k = c.n_head_k, rule.n_head_v = c.n_head_v, rule.head_dim = c.head_dim;
        ops.rule(exec, rule_runs.data(), n_runs, rule, y.data());
        ops.norm(exec, y.data(), in.z, in.norm, n_rows * c.n_head_v, c.head_dim, in.eps);
        y.insert(y.end(), conv_states.begin(), conv_states.end());
        y.insert(y.end(), states.begin(), states.end());
        return y;
    }

    std::vector<float> fused(Exec& exec, GdnHeads* op) const {
        std::vector<float> qkv(u.size()), beta(b.size()), g(b.size());
        Guarded y(z.size()), conv_states(conv_state), states(state);
        const auto all = runs(conv_states.data(), states.data());
        op(exec, all.data(), static_cast<int>(all.size()), in, {qkv.data(), beta.data(), g.data()}, y.data());
        auto result = y.vector();
        const auto conv_result = conv_states.vector(), state_result = states.vector();
        result.insert(result.end(), conv_result.begin(), conv_result.end());
        result.insert(result.end(), state_result.begin(), state_result.end());
        return result;
    }
};

TEST(GdnHeadsTest, GivesTheBitsOfItsOpsOneAtATime) {
    const SingleOps ref{causal_conv_ref, l2_norm_ref, gdn_gates_ref, gated_delta_rule_ref,
                        gated_rms_norm_ref};
    const SingleOps cpu{causal_conv_cpu, l2_norm_cpu, gdn_gates_cpu, gated_delta_rule_cpu,
                        gated_rms_norm_cpu};
    for (const auto& impl : host_impls<GdnHeads>(gdn_heads_ref, gdn_heads_cpu))
        for (const HeadsCase& c : kCases) {
            SCOPED_TRACE(c.name);
            const HeadsData data(c);
            with_teams(impl, [&](Exec& exec) {
                exec.reserve_scratch(gdn_heads_scratch_bytes(c.n_head_k, c.n_head_v, c.head_dim));
                EXPECT_EQ(data.fused(exec, impl.op), data.one_op_at_a_time(exec, impl.is_exact ? ref : cpu));
            });
        }
}

}  // namespace
}  // namespace pantheon::kernels::test

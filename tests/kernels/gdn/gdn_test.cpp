#include <cstring>

#include "kernels/gdn/causal_conv.h"
#include "kernels/gdn/gated_delta_rule.h"
#include "kernels/gdn/gated_rms_norm.h"
#include "kernels/gdn/gdn_gates.h"
#include "tests/kernels/kernel_test.h"

namespace pantheon::kernels::test {
namespace {

const auto kConv = host_impls<CausalConv>(causal_conv_ref, causal_conv_cpu);
const auto kGates = host_impls<GdnGates>(gdn_gates_ref, gdn_gates_cpu);
const auto kRule = host_impls<GatedDeltaRule>(gated_delta_rule_ref, gated_delta_rule_cpu);
const auto kNorm = host_impls<GatedRmsNorm>(gated_rms_norm_ref, gated_rms_norm_cpu);

std::size_t size(std::int64_t n) {
    return static_cast<std::size_t>(n);
}

// ---- CausalConv ----

TEST(CausalConvTest, TapZeroMeetsTheOldestInput) {
    for (const auto& impl : kConv)
        with_teams(impl, [&](Exec& exec) {
            // An impulse at token 0: the output at token t is tap d_conv − 1 − t.
            const float w[] = {1, 2, 3, 4};
            const float u[] = {1, 0, 0, 0, 0};
            Guarded state(std::vector<float>(3, 0.0f)), y(5);
            const ConvRun run{0, 5, state.data()};
            impl.op(exec, &run, 1, u, w, y.data(), 1, 4);
            expect_close(y.vector(), std::vector<double>{silu(4), silu(3), silu(2), silu(1), 0},
                         impl.rounding);
        });
}

TEST(CausalConvTest, StateKeepsRawInputsOldestFirst) {
    for (const auto& impl : kConv)
        with_teams(impl, [&](Exec& exec) {
            const float w[] = {1, 1, 1, -1, -1, -1};  // two channels, three taps
            const float u[] = {10, -20, 30, -40};     // two tokens
            Guarded state(std::vector<float>{1, 2, 3, 4}), y(4);
            const ConvRun one{0, 1, state.data()};
            impl.op(exec, &one, 1, u, w, y.data(), 2, 3);
            EXPECT_EQ(state.vector(), (std::vector<float>{2, 10, 4, -20}));
            const ConvRun next{1, 1, state.data()};
            impl.op(exec, &next, 1, u, w, y.data(), 2, 3);
            EXPECT_EQ(state.vector(), (std::vector<float>{10, 30, -20, -40}));
        });
}

TEST(CausalConvTest, MatchesTheFormulaForRunsOfAnyLength) {
    const struct {
        int n_channels, d_conv;
        std::vector<int> lengths;
    } kCases[] = {{128, 4, {7}}, {33, 3, {1, 4, 2}}, {5, 2, {3, 1}}, {200, 4, {1, 1, 1}}};
    for (const auto& impl : kConv)
        for (const auto& c : kCases) {
            int n_rows = 0;
            for (const int n : c.lengths) n_rows += n;
            const auto u = random_values(size(n_rows * c.n_channels), 1);
            const auto w = random_values(size(c.n_channels * c.d_conv), 2);
            const std::size_t n_state = size(c.n_channels * (c.d_conv - 1));
            const auto state = random_values(n_state * c.lengths.size(), 3);
            std::vector<double> want(u.size());
            std::vector<float> want_state;
            int first = 0;
            for (std::size_t s = 0; s < c.lengths.size(); first += c.lengths[s++])
                for (int ch = 0; ch < c.n_channels; ++ch) {
                    std::vector<float> history;
                    for (int j = 0; j < c.d_conv - 1; ++j)
                        history.push_back(state[s * n_state + size(ch * (c.d_conv - 1) + j)]);
                    for (int t = first; t < first + c.lengths[s]; ++t) {
                        history.push_back(u[size(t * c.n_channels + ch)]);
                        double sum = 0;
                        for (int j = 0; j < c.d_conv; ++j)
                            sum += static_cast<double>(w[size(ch * c.d_conv + j)]) *
                                   history[history.size() - size(c.d_conv) + size(j)];
                        want[size(t * c.n_channels + ch)] = silu(sum);
                    }
                    want_state.insert(want_state.end(), history.end() - (c.d_conv - 1), history.end());
                }
            with_teams(impl, [&](Exec& exec) {
                Guarded have_state(state), y(u.size());
                std::vector<ConvRun> runs;
                int row = 0;
                for (std::size_t s = 0; s < c.lengths.size(); row += c.lengths[s++])
                    runs.push_back({row, c.lengths[s], have_state.data() + s * n_state});
                impl.op(exec, runs.data(), static_cast<int>(runs.size()), u.data(), w.data(), y.data(),
                        c.n_channels, c.d_conv);
                expect_close(y.vector(), want, impl.rounding);
                EXPECT_EQ(have_state.vector(), want_state);
            });
        }
}

// ---- GdnGates ----

TEST(GdnGatesTest, BetaIsASigmoidAndTheLogDecayIsNotPositive) {
    constexpr int kTokens = 5, kHeads = 7;
    const auto b = random_values(kTokens * kHeads, 1, -8, 8);
    const auto alpha = random_values(kTokens * kHeads, 2, -30, 40);  // both branches of softplus
    const auto a = random_values(kHeads, 3, -2, -0.1), dt = random_values(kHeads, 4);
    std::vector<double> want_beta, want_g;
    for (std::size_t i = 0; i < b.size(); ++i) {
        const double x = static_cast<double>(alpha[i]) + dt[i % kHeads];
        want_beta.push_back(sigmoid(b[i]));
        want_g.push_back(a[i % kHeads] * (x > 20 ? x : std::log(1 + std::exp(x))));
    }
    for (const auto& impl : kGates)
        with_teams(impl, [&](Exec& exec) {
            Guarded beta(b), g(alpha);  // in place
            impl.op(exec, beta.data(), g.data(), a.data(), dt.data(), beta.data(), g.data(), kTokens, kHeads);
            expect_close(beta.vector(), want_beta, impl.rounding);
            expect_close(g.vector(), want_g, impl.rounding);
            for (const float value : g.vector()) EXPECT_LE(value, 0);
        });
}

TEST(GdnGatesTest, SmallDecaysKeepTheirDigits) {
    for (const auto& impl : kGates)
        with_teams(impl, [&](Exec& exec) {
            const float b = 0, alpha = -25, a = -1, dt = 0;
            float beta, g;
            impl.op(exec, &b, &alpha, &a, &dt, &beta, &g, 1, 1);
            EXPECT_NEAR(g / -std::exp(-25.0), 1.0, 1e-6);  // 1 + e^-25 rounds to 1 in f32
        });
}

// ---- GatedDeltaRule ----

struct RuleCase {
    const char* name;
    int n_head_k, n_head_v, head_dim;
    std::vector<int> lengths;  // of the runs
};
const RuleCase kRuleCases[] = {
    {"decode", 2, 4, 16, {1}},  {"three_groups", 3, 9, 8, {5}}, {"equal_heads", 3, 3, 10, {2, 4}},
    {"one_head", 1, 1, 7, {9}}, {"batch", 2, 4, 16, {1, 6, 1}}, {"long", 2, 4, 16, {300}},
};

struct RuleData {
    std::vector<float> qkv, g, beta, state;
    GdnInputs in;
    std::size_t n_state;

    explicit RuleData(const RuleCase& c) {
        int n_rows = 0;
        for (const int n : c.lengths) n_rows += n;
        const int kd = c.n_head_k * c.head_dim, stride = 2 * kd + c.n_head_v * c.head_dim + 3;
        qkv = random_values(size(n_rows * stride), 1);
        for (int t = 0; t < n_rows; ++t)
            for (int h = 0; h < 2 * c.n_head_k; ++h) {
                float* head = qkv.data() + t * stride + h * c.head_dim;
                double squares = 0;
                for (int i = 0; i < c.head_dim; ++i) squares += head[i] * head[i];
                for (int i = 0; i < c.head_dim; ++i)
                    head[i] = static_cast<float>(head[i] / std::sqrt(squares));
            }
        g = random_values(size(n_rows * c.n_head_v), 2, -1.5, 0);
        beta = random_values(size(n_rows * c.n_head_v), 3, 0, 1);
        n_state = size(c.n_head_v * c.head_dim * c.head_dim);
        state = random_values(n_state * c.lengths.size(), 4, -0.5, 0.5);
        in.q = qkv.data();
        in.k = qkv.data() + kd;
        in.v = qkv.data() + 2 * kd;
        in.qkv_stride = stride;
        in.g = g.data();
        in.beta = beta.data();
        in.n_head_k = c.n_head_k;
        in.n_head_v = c.n_head_v;
        in.head_dim = c.head_dim;
    }

    std::vector<GdnRun> runs(const RuleCase& c, float* states) const {
        std::vector<GdnRun> runs;
        int row = 0;
        for (std::size_t s = 0; s < c.lengths.size(); row += c.lengths[s++])
            runs.push_back({row, c.lengths[s], {states + s * n_state, c.head_dim}});
        return runs;
    }
};

/// The rule on S[k][v] as it is written in the contract, in double.
void rule_in_double(const RuleCase& c, const RuleData& data, std::vector<double>& y,
                    std::vector<double>& state) {
    const std::size_t d = size(c.head_dim);
    state.assign(data.state.begin(), data.state.end());
    int row = 0;
    for (std::size_t s = 0; s < c.lengths.size(); ++s)
        for (const int end = row + c.lengths[s]; row < end; ++row)
            for (int h = 0; h < c.n_head_v; ++h) {
                const int kh = h % c.n_head_k;
                const float* q = data.in.q + row * data.in.qkv_stride + kh * c.head_dim;
                const float* k = data.in.k + row * data.in.qkv_stride + kh * c.head_dim;
                const float* v = data.in.v + row * data.in.qkv_stride + h * c.head_dim;
                const double beta = data.beta[size(row * c.n_head_v + h)];
                const double decay = std::exp(data.g[size(row * c.n_head_v + h)]);
                const auto element = [&](std::size_t i, std::size_t j) -> double& {
                    return state[s * data.n_state + (size(h) * d + j) * d + i];
                };
                for (std::size_t i = 0; i < d; ++i)
                    for (std::size_t j = 0; j < d; ++j) element(i, j) *= decay;
                for (std::size_t j = 0; j < d; ++j) {
                    double prediction = 0, out = 0;
                    for (std::size_t i = 0; i < d; ++i) prediction += element(i, j) * k[i];
                    for (std::size_t i = 0; i < d; ++i) element(i, j) += k[i] * beta * (v[j] - prediction);
                    for (std::size_t i = 0; i < d; ++i) out += element(i, j) * q[i];
                    y.push_back(out / std::sqrt(static_cast<double>(d)));
                }
            }
}

TEST(GatedDeltaRuleTest, MatchesTheFormulaOnEveryShape) {
    for (const auto& impl : kRule)
        for (const RuleCase& c : kRuleCases) {
            SCOPED_TRACE(impl.name + " " + c.name);
            const RuleData data(c);
            std::vector<double> want, want_state;
            rule_in_double(c, data, want, want_state);
            with_teams(impl, [&](Exec& exec) {
                Guarded state(data.state), y(want.size());
                const auto runs = data.runs(c, state.data());
                impl.op(exec, runs.data(), static_cast<int>(runs.size()), data.in, y.data());
                expect_close(y.vector(), want, tol::few_roundings);
                expect_close(state.vector(), want_state, tol::few_roundings);
            });
        }
}

TEST(GatedDeltaRuleTest, PairsHeadsInterleaved) {
    // Four V heads on two K heads: V heads 0 and 2 read K head 0, V heads 1 and 3 read K head 1.
    for (const auto& impl : kRule)
        with_teams(impl, [&](Exec& exec) {
            const float q[] = {1, 0, 0, 1}, k[] = {1, 0, 0, 1}, v[] = {1, 0, 1, 0, 1, 0, 1, 0};
            const float g[4] = {0, 0, 0, 0}, beta[4] = {1, 1, 1, 1};
            GdnInputs in;
            in.q = q, in.k = k, in.v = v, in.qkv_stride = 8, in.g = g, in.beta = beta;
            in.n_head_k = 2, in.n_head_v = 4, in.head_dim = 2;
            Guarded state(std::vector<float>(16, 0.0f)), y(8);
            const GdnRun run{0, 1, {state.data(), 2}};
            impl.op(exec, &run, 1, in, y.data());
            for (const int v_head : {0, 1, 2, 3})
                for (const int i : {0, 1})
                    EXPECT_EQ(run.state.at(v_head, 0, i), i == v_head % 2 ? 1.0f : 0.0f);
        });
}

TEST(GatedDeltaRuleTest, FirstTokenIsReadAfterItsWriteAndScaledOnce) {
    for (const auto& impl : kRule)
        with_teams(impl, [&](Exec& exec) {
            const float q[] = {0.6f, 0.8f}, k[] = {0.8f, 0.6f}, v[] = {2, -3}, g = -0.5f, beta = 0.25f;
            GdnInputs in;
            in.q = q, in.k = k, in.v = v, in.qkv_stride = 2, in.g = &g, in.beta = &beta;
            in.n_head_k = in.n_head_v = 1, in.head_dim = 2;
            Guarded state(std::vector<float>(4, 0.0f)), y(2);
            const GdnRun run{0, 1, {state.data(), 2}};
            impl.op(exec, &run, 1, in, y.data());
            const double read = 0.25 * 0.96 / std::sqrt(2.0);  // beta (k·q) / sqrt(d)
            expect_close(y.vector(), std::vector<double>{2 * read, -3 * read}, 1e-6);
        });
}

TEST(GatedDeltaRuleTest, PredictsFromTheDecayedState) {
    // One dimension, state 1, decay 1/2, k = q = 1, beta 1: the write replaces what the decayed state says.
    for (const auto& impl : kRule)
        with_teams(impl, [&](Exec& exec) {
            const float one = 1, v = 10, g = std::log(0.5f), beta = 0.5f;
            GdnInputs in;
            in.q = in.k = &one, in.v = &v, in.qkv_stride = 1, in.g = &g, in.beta = &beta;
            in.n_head_k = in.n_head_v = in.head_dim = 1;
            float state = 1, y;
            const GdnRun run{0, 1, {&state, 1}};
            impl.op(exec, &run, 1, in, &y);
            EXPECT_NEAR(state, 0.5 + 0.5 * (10 - 0.5), 1e-5);
            EXPECT_EQ(y, state);
        });
}

TEST(GatedDeltaRuleTest, CutsIntoRunsGiveTheSameBits) {
    const RuleCase c{"whole", 2, 4, 16, {70}};
    const RuleData data(c);
    for (const auto& impl : kRule)
        with_teams(impl, [&](Exec& exec) {
            Guarded whole_state(data.state), whole(70 * 64), cut_state(data.state), cut(70 * 64);
            const GdnRun all{0, 70, {whole_state.data(), 16}};
            impl.op(exec, &all, 1, data.in, whole.data());
            for (int row = 0; row < 70; row += 13) {
                const GdnRun part{row, std::min(13, 70 - row), {cut_state.data(), 16}};
                impl.op(exec, &part, 1, data.in, cut.data());
            }
            EXPECT_EQ(whole.vector(), cut.vector());
            EXPECT_EQ(whole_state.vector(), cut_state.vector());
        });
}

// ---- GatedRmsNorm ----

TEST(GatedRmsNormTest, NormalisesFirstAndGatesAfter) {
    const struct { int n_rows, head_dim; } kCases[] = {{1, 128}, {9, 7}, {4, 1}};
    for (const auto& impl : kNorm)
        for (const auto& c : kCases) {
            const auto x = random_values(size(c.n_rows * c.head_dim), 1, -0.01, 0.01);
            const auto z = random_values(x.size(), 2, -4, 4),
                       w = random_values(size(c.head_dim), 3, 0.5, 1.5);
            std::vector<double> want;
            for (int r = 0; r < c.n_rows; ++r) {
                double squares = 0;
                for (int i = 0; i < c.head_dim; ++i) squares += std::pow(x[size(r * c.head_dim + i)], 2);
                for (int i = 0; i < c.head_dim; ++i) {
                    const std::size_t at = size(r * c.head_dim + i);
                    want.push_back(x[at] / std::sqrt(squares / c.head_dim + 1e-6f) * w[size(i)] *
                                   silu(z[at]));
                }
            }
            with_teams(impl, [&](Exec& exec) {
                Guarded y(x);
                impl.op(exec, y.data(), z.data(), w.data(), c.n_rows, c.head_dim, 1e-6f);
                expect_close(y.vector(), want, impl.rounding);
            });
        }
}

}  // namespace
}  // namespace pantheon::kernels::test

// The gated delta rule where a chunked form of it goes wrong: around the chunk length, and under strong
// decay.
#include <cmath>
#include <vector>

#include "kernels/gdn/gated_delta_rule.h"
#include "tests/kernels/kernel_test.h"

namespace pantheon::kernels::test {
namespace {

const auto kRule = host_impls<GatedDeltaRule>(gated_delta_rule_ref, gated_delta_rule_cpu);
constexpr int kDim = 8;

/// One head, n tokens with rows [q, k, v].
struct OneHead {
    std::vector<float> qkv, g, beta;

    OneHead(int n_rows, double lowest_g, double highest_g)
        : qkv(random_values(static_cast<std::size_t>(n_rows) * 3 * kDim, 1)),
          g(random_values(static_cast<std::size_t>(n_rows), 2, lowest_g, highest_g)),
          beta(random_values(static_cast<std::size_t>(n_rows), 3, 0, 1)) {
        for (std::size_t row = 0; row < g.size(); ++row)
            for (std::size_t part = 0; part < 2; ++part) {
                float* head = qkv.data() + (row * 3 + part) * kDim;
                double squares = 0;
                for (int i = 0; i < kDim; ++i) squares += static_cast<double>(head[i]) * head[i];
                for (int i = 0; i < kDim; ++i) head[i] = static_cast<float>(head[i] / std::sqrt(squares));
            }
    }

    GdnInputs inputs() const {
        GdnInputs in;
        in.q = qkv.data();
        in.k = qkv.data() + kDim;
        in.v = qkv.data() + 2 * kDim;
        in.qkv_stride = 3 * kDim;
        in.g = g.data();
        in.beta = beta.data();
        in.n_head_k = in.n_head_v = 1;
        in.head_dim = kDim;
        return in;
    }

    /// The rule token by token in double. state[v][k], as it is stored.
    std::vector<double> in_double(std::vector<double>& state) const {
        std::vector<double> y;
        for (std::size_t t = 0; t < g.size(); ++t) {
            const float *q = qkv.data() + t * 3 * kDim, *k = q + kDim, *v = k + kDim;
            const double decay = std::exp(static_cast<double>(g[t]));
            for (std::size_t j = 0; j < kDim; ++j) {
                double* row = state.data() + j * kDim;
                double prediction = 0, out = 0;
                for (int i = 0; i < kDim; ++i) prediction += (row[i] *= decay) * k[i];
                for (int i = 0; i < kDim; ++i) {
                    row[i] += k[i] * (beta[t] * (static_cast<double>(v[j]) - prediction));
                    out += row[i] * q[i];
                }
                y.push_back(out / std::sqrt(static_cast<double>(kDim)));
            }
        }
        return y;
    }
};

/// Output and state of one run against the rule in double, and that run again cut after `cut` tokens.
void expect_rule(const OneHead& data, int cut, const Impl<GatedDeltaRule>& impl) {
    const int n_rows = static_cast<int>(data.g.size());
    const auto before = random_values(kDim * kDim, 4, -0.5, 0.5);
    std::vector<double> want_state(before.begin(), before.end());
    const std::vector<double> want = data.in_double(want_state);
    with_teams(impl, [&](Exec& exec) {
        Guarded state(before), y(want.size());
        const GdnRun run{0, n_rows, {state.data(), kDim}};
        impl.op(exec, &run, 1, data.inputs(), y.data());
        expect_close(y.vector(), want, tol::few_roundings);
        expect_close(state.vector(), want_state, tol::few_roundings);
        if (cut <= 0 || cut >= n_rows) return;
        Guarded cut_state(before), cut_y(want.size());
        for (const GdnRun& part :
             {GdnRun{0, cut, {cut_state.data(), kDim}}, GdnRun{cut, n_rows - cut, {cut_state.data(), kDim}}})
            impl.op(exec, &part, 1, data.inputs(), cut_y.data());
        expect_close(cut_y.vector(), want, tol::few_roundings);
        expect_close(cut_state.vector(), want_state, tol::few_roundings);
    });
}

TEST(GatedDeltaRuleLimitsTest, LengthsAroundAChunkGiveTheSameOutputAndState) {
    for (const auto& impl : kRule)
        for (const int n_rows : {63, 64, 65, 128, 129, 130}) {
            SCOPED_TRACE(std::string(impl.name) + " " + std::to_string(n_rows) + " tokens");
            expect_rule(OneHead(n_rows, -0.2, 0), 64, impl);
        }
}

TEST(GatedDeltaRuleLimitsTest, StrongDecayForgetsAndOverflowsNothing) {
    for (const auto& impl : kRule)
        for (const double g : {-30.0, -300.0}) {
            SCOPED_TRACE(std::string(impl.name) + " g " + std::to_string(g));
            expect_rule(OneHead(70, g, g), 33, impl);
        }
}

TEST(GatedDeltaRuleLimitsTest, StrongDecayNowAndThenLeavesItsNeighboursAlone) {
    for (const auto& impl : kRule) {
        OneHead data(130, -0.1, 0);
        for (const std::size_t t : {3u, 64u, 65u, 127u}) data.g[t] = -80;
        expect_rule(data, 65, impl);
    }
}

}  // namespace
}  // namespace pantheon::kernels::test

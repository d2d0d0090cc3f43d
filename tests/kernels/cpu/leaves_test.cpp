// The inner loops of the cpu backend: every instruction set gives the bits of plain C++, and the functions
// that stand in for the C library's are as good as they say.
#include "kernels/cpu/leaves.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "kernels/attention/kv_rows.h"
#include "kernels/cpu/f64_math.h"
#include "tests/kernels/kernel_test.h"

namespace pantheon::kernels::test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

/// What a leaf writes, from the same inputs for every instruction set.
using Run = std::function<std::vector<float>(const Leaves&)>;

struct Case {
    const char* name;
    Run run;
};

std::vector<float> page_output(const Leaves& leaves, KvRowType type, int head_dim, int n_rows) {
    const auto d = static_cast<std::size_t>(head_dim),
               padded = static_cast<std::size_t>(padded_head_dim(head_dim));
    const std::size_t row_bytes = kv_row_bytes(type, head_dim);
    const std::size_t half_bytes = kv_row_bytes(KvRowType::f16, head_dim);
    std::vector<std::byte> page(2 * kKvPageRows * row_bytes), halves(2 * kKvPageRows * half_bytes);
    for (std::size_t r = 0; r < 2 * kKvPageRows; ++r) {
        const auto values = random_values(d, 5 + r, -2, 2);
        store_kv_row(type, values.data(), head_dim, page.data() + r * row_bytes);
        store_kv_row(KvRowType::f16, values.data(), head_dim, halves.data() + r * half_bytes);
    }
    const int n_half = n_rows / 3;  // the last rows are read in f16
    const auto begin = static_cast<std::size_t>(n_rows - n_half);
    const KvStretch stretches[] = {
        {type, row_bytes, page.data(), page.data() + kKvPageRows * row_bytes, n_rows - n_half},
        {KvRowType::f16, half_bytes, halves.data() + begin * half_bytes,
         halves.data() + (kKvPageRows + begin) * half_bytes, n_half}};
    const auto q = random_values(3 * d, 7, -2, 2);
    const std::size_t n_sums = QueryQuad::kSize * padded;
    std::vector<float> out(3 * n_sums), scores(2 * QueryQuad::kSize * kKvPageRows),
        tile(attention_tile_floats(head_dim));
    QueryQuad quads[2];
    for (std::size_t i = 0; i < 2; ++i) {
        for (std::size_t h = 0; h < QueryQuad::kSize; ++h) {
            quads[i].q[h] = q.data() + (h + i) % 3 * d;
            quads[i].max[h] = -kInf;
            quads[i].weight[h] = 0;
        }
        quads[i].sum = out.data() + i * n_sums;
        quads[i].scores = scores.data() + i * QueryQuad::kSize * kKvPageRows;
        quads[i].n_rows = i == 0 ? n_rows : n_rows / 2;
    }
    for (int pages = 0; pages < 2; ++pages)
        leaves.attend_page(stretches, n_half > 0 ? 2 : 1, head_dim, quads, 2, tile.data());
    if (quads[1].n_rows > 0) leaves.merge_quad(quads[1], head_dim, quads[0]);
    for (const QueryQuad& quad : quads) {
        out.insert(out.end(), quad.weight, quad.weight + QueryQuad::kSize);
        out.insert(out.end(), quad.max, quad.max + QueryQuad::kSize);
    }
    return out;
}

std::vector<float> rule_output(const Leaves& leaves, int head_dim, int n_rows) {
    const std::size_t d = static_cast<std::size_t>(head_dim), rows = static_cast<std::size_t>(n_rows);
    constexpr int kTokens = 5;
    const auto q = random_values(kTokens * d, 1), k = random_values(kTokens * d, 2),
               v = random_values(kTokens * d, 3), g = random_values(kTokens, 4, -1, 0),
               beta = random_values(kTokens, 5, 0, 1);
    std::vector<float> out = random_values(rows * d, 6);
    std::vector<float> y(kTokens * rows);
    DeltaRuleToken tokens[kTokens];
    leaves.delta_rule_tokens(q.data(), k.data(), head_dim, head_dim, g.data(), beta.data(), 1, kTokens,
                             tokens);
    leaves.delta_rule({out.data(), n_rows, head_dim, kTokens, q.data(), k.data(), v.data(), head_dim, tokens,
                       y.data(), n_rows});
    out.insert(out.end(), y.begin(), y.end());
    return out;
}

std::vector<Case> cases_of_length(std::size_t n) {
    const int length = static_cast<int>(n);
    const auto x = random_values(n, 1, -9, 9), w = random_values(n, 2), z = random_values(n, 3, -20, 20);
    std::vector<Case> cases;
    const auto add = [&](const char* name, Run run) { cases.push_back({name, std::move(run)}); };
    add("rms_norm", [=](const Leaves& leaves) {
        std::vector<float> y(n);
        leaves.rms_norm(x.data(), w.data(), y.data(), length, 1e-6f);
        return y;
    });
    add("l2_norm", [=](const Leaves& leaves) {
        auto y = x;
        leaves.l2_norm(y.data(), length, 1e-6f);
        return y;
    });
    add("gated_rms_norm", [=](const Leaves& leaves) {
        auto y = x;
        leaves.gated_rms_norm(y.data(), z.data(), w.data(), length, 1e-6f);
        return y;
    });
    add("swiglu", [=](const Leaves& leaves) {
        std::vector<float> y(n);
        leaves.swiglu(z.data(), x.data(), y.data(), length);
        return y;
    });
    add("output_gate", [=](const Leaves& leaves) {
        auto y = x;
        leaves.output_gate(y.data(), z.data(), length);
        return y;
    });
    add("rotate", [=](const Leaves& leaves) {
        auto y = random_values(2 * n, 4);
        leaves.rotate(y.data(), x.data(), w.data(), length);
        return y;
    });
    add("exp_minus", [=](const Leaves& leaves) {
        std::vector<float> y(n);
        leaves.exp_minus(z.data(), 1.5f, y.data(), length);
        return y;
    });
    add("moe_combine", [=](const Leaves& leaves) {
        const auto routed = random_values(3 * n, 5);
        const float weights[] = {0.5f, 0.3f, 0.2f};
        std::vector<float> y(n);
        leaves.moe_combine(routed.data(), length, weights, 3, x.data(), 0.7f, z.data(), y.data(), length);
        return y;
    });
    add("causal_conv", [=](const Leaves& leaves) {
        const auto u = random_values(5 * n, 6), taps = random_values(4 * n, 7);
        auto state = random_values(3 * n, 8);
        std::vector<float> y(5 * n);
        leaves.causal_conv({length, u.data(), taps.data(), state.data(), y.data(), length, length, 5, 4});
        y.insert(y.end(), state.begin(), state.end());
        return y;
    });
    add("delta_rule",
        [=](const Leaves& leaves) { return rule_output(leaves, length, length < 16 ? length : 16); });
    for (const KvRowType type : {KvRowType::f32, KvRowType::f16, KvRowType::q8_0, KvRowType::q4_0})
        for (const int n_rows : {1, 2, 37, kKvPageRows})
            add("attend_page",
                [=](const Leaves& leaves) { return page_output(leaves, type, length, n_rows); });
    return cases;
}

TEST(LeavesTest, EveryInstructionSetGivesTheBitsOfPlainCode) {
    for (const std::size_t n : {1u, 7u, 8u, 12u, 20u, 128u})
        for (const Case& c : cases_of_length(n)) {
            SCOPED_TRACE(std::string(c.name) + " " + std::to_string(n));
            const auto want = c.run(cpu_leaves(CpuIsa::scalar));
            for (const CpuIsa isa : cpu_isas()) {
                const auto have = c.run(cpu_leaves(isa));
                ASSERT_EQ(have.size(), want.size());
                EXPECT_EQ(std::memcmp(have.data(), want.data(), want.size() * sizeof(float)), 0)
                    << cpu_isa_name(isa);
            }
        }
}

TEST(LeavesTest, ExpIsWithinTwoUnitsInTheLastPlace) {
    std::vector<float> x;
    for (float v = -87; v < 88.7f; v += 0.00371f) x.push_back(v);
    for (const CpuIsa isa : cpu_isas()) {
        std::vector<float> y(x.size());
        cpu_leaves(isa).exp_minus(x.data(), 0, y.data(), static_cast<std::int64_t>(x.size()));
        for (std::size_t i = 0; i < x.size(); ++i)
            ASSERT_NEAR(y[i] / std::exp(static_cast<double>(x[i])), 1, 2.4e-7) << x[i];
    }
}

TEST(LeavesTest, ExpEndsInZeroAndInfinityAndKeepsNaN) {
    for (const CpuIsa isa : cpu_isas()) {
        const float x[] = {-kInf, -1000, -104, 0, 89, 1000, kInf, std::numeric_limits<float>::quiet_NaN()};
        float y[8];
        cpu_leaves(isa).exp_minus(x, 0, y, 8);
        for (int i = 0; i < 3; ++i) EXPECT_EQ(y[i], 0) << x[i];
        EXPECT_EQ(y[3], 1);
        for (int i = 4; i < 7; ++i) EXPECT_EQ(y[i], kInf) << x[i];
        EXPECT_TRUE(std::isnan(y[7]));
    }
}

TEST(F64MathTest, AgreesWithTheLibrary) {
    for (double x = -700; x < 700; x += 0.317) ASSERT_NEAR(f64::exp(x) / std::exp(x), 1, 4e-15) << x;
    for (double x = 1e-300; x < 1e300; x *= 1.7)
        ASSERT_NEAR(f64::log(x), std::log(x), 1e-15 * std::fabs(std::log(x)) + 4e-16) << x;
    for (double x = 1e-18; x < 1e9; x *= 1.3) ASSERT_NEAR(f64::log1p(x) / std::log1p(x), 1, 4e-15) << x;
    for (double x = -300000; x < 300000; x += 7.77) {
        ASSERT_NEAR(f64::sin_cos(x).sin, std::sin(x), 1e-14) << x;
        ASSERT_NEAR(f64::sin_cos(x).cos, std::cos(x), 1e-14) << x;
    }
    EXPECT_EQ(f64::exp(-1000), 0);
    EXPECT_EQ(f64::exp(1000), std::numeric_limits<double>::infinity());
    EXPECT_EQ(f64::sin_cos(0).cos, 1);
}

}  // namespace
}  // namespace pantheon::kernels::test

#include <algorithm>

#include "kernels/moe/expert_linear.h"
#include "kernels/moe/moe_combine.h"
#include "kernels/moe/router.h"
#include "kernels/moe/swiglu.h"
#include "tests/kernels/activations.h"
#include "tests/kernels/kernel_test.h"
#include "tests/kernels/weight_bytes.h"

namespace pantheon::kernels::test {
namespace {

const auto kRouter = host_impls<Router>(router_ref, router_cpu);
const auto kExpertLinear = host_impls<ExpertLinear>(expert_linear_ref, expert_linear_cpu);
const auto kSwiglu = host_impls<Swiglu>(swiglu_ref, swiglu_cpu);
const auto kCombine = host_impls<MoeCombine>(moe_combine_ref, moe_combine_cpu);

TEST(RouterTest, PicksTheMostLikelyAndRenormalises) {
    const struct {
        int n_rows, n_expert, n_used;
    } kCases[] = {{1, 8, 2}, {3, 5, 5}, {2, 7, 1}, {4, 256, 8}, {1, 1, 1}};
    for (const auto& impl : kRouter)
        for (const auto& c : kCases) {
            SCOPED_TRACE(impl.name + " " + std::to_string(c.n_expert) + " experts");
            const auto logits = random_values(static_cast<std::size_t>(c.n_rows * c.n_expert), 4, -5, 5);
            with_teams(impl, [&](Exec& exec) {
                const std::size_t n = static_cast<std::size_t>(c.n_rows * c.n_used);
                std::vector<std::int32_t> ids(n);
                Guarded weights(n);
                impl.op(exec, logits.data(), ids.data(), weights.data(), c.n_rows, c.n_expert, c.n_used);
                for (int r = 0; r < c.n_rows; ++r) {
                    const float* row = logits.data() + r * c.n_expert;
                    std::vector<std::int32_t> order(static_cast<std::size_t>(c.n_expert));
                    for (int e = 0; e < c.n_expert; ++e) order[static_cast<std::size_t>(e)] = e;
                    std::stable_sort(order.begin(), order.end(),
                                     [&](int a, int b) { return row[a] > row[b]; });
                    double sum = 0;
                    for (int i = 0; i < c.n_used; ++i)
                        sum += std::exp(row[order[static_cast<std::size_t>(i)]]);
                    for (int i = 0; i < c.n_used; ++i) {
                        const std::size_t at = static_cast<std::size_t>(r * c.n_used + i);
                        ASSERT_EQ(ids[at], order[static_cast<std::size_t>(i)]);
                        ASSERT_NEAR(weights[at], std::exp(row[ids[at]]) / sum, impl.rounding);
                    }
                }
            });
        }
}

TEST(RouterTest, TiesGoToTheLowerIndexAndNaNPicksDistinctExperts) {
    for (const auto& impl : kRouter)
        with_teams(impl, [&](Exec& exec) {
            const float nan = std::numeric_limits<float>::quiet_NaN();
            const float logits[] = {1, 3, 2, 3, 3, nan, nan, nan, nan, nan};
            std::int32_t ids[6];
            float weights[6];
            impl.op(exec, logits, ids, weights, 2, 5, 3);
            EXPECT_EQ(std::vector<std::int32_t>(ids, ids + 3), (std::vector<std::int32_t>{1, 3, 4}));
            std::sort(ids + 3, ids + 6);
            for (int i = 3; i < 6; ++i) {
                EXPECT_GE(ids[i], 0);
                EXPECT_LT(ids[i], 5);
                EXPECT_TRUE(i == 3 || ids[i] != ids[i - 1]);
            }
        });
}

TEST(RouterTest, SumOfPickedProbabilitiesHasAFloor) {
    // 40,000 equal experts, one picked: p = 1/40000 is below 2^-14, so the weight is p · 2^14.
    for (const auto& impl : kRouter)
        with_teams(impl, [&](Exec& exec) {
            const std::vector<float> logits(40000, 0.5f);
            std::int32_t id;
            float weight;
            impl.op(exec, logits.data(), &id, &weight, 1, 40000, 1);
            EXPECT_EQ(id, 0);
            EXPECT_NEAR(weight, 16384.0 / 40000.0, 1e-6);
        });
}

TEST(RouterTest, LargeLogitsDoNotOverflow) {
    for (const auto& impl : kRouter)
        with_teams(impl, [&](Exec& exec) {
            const float logits[] = {5000, 4999, -5000};
            std::int32_t ids[2];
            float weights[2];
            impl.op(exec, logits, ids, weights, 1, 3, 2);
            EXPECT_NEAR(weights[0], sigmoid(1), 1e-6);
            EXPECT_NEAR(weights[1], sigmoid(-1), 1e-6);
        });
}

TEST(ExpertGroupsTest, SortsPairsByExpert) {
    const std::int32_t ids[] = {4, 1, 4, 0, 1, 4};
    std::int32_t active[6], begin[7], pairs[6];
    const ExpertGroups groups = group_by_expert(ids, 6, 6, active, begin, pairs);
    ASSERT_EQ(groups.n_active, 3);
    EXPECT_EQ(std::vector<std::int32_t>(active, active + 3), (std::vector<std::int32_t>{0, 1, 4}));
    EXPECT_EQ(std::vector<std::int32_t>(begin, begin + 4), (std::vector<std::int32_t>{0, 1, 3, 6}));
    EXPECT_EQ(std::vector<std::int32_t>(pairs, pairs + 6), (std::vector<std::int32_t>{3, 1, 4, 0, 2, 5}));
    EXPECT_EQ(group_by_expert(ids, 0, 6, active, begin, pairs).n_active, 0);
}

TEST(ExpertLinearTest, EachPairMeetsItsOwnExpertsMatrix) {
    constexpr int kExperts = 5, kUsed = 2, kRows = 7;
    const struct {
        const char* name;
        WeightType type;
        std::int64_t n_in, n_out, rows_per_expert, first_row;
    } kCases[] = {{"f32", WeightType::f32, 24, 10, 10, 0},
                  {"q4_0", WeightType::q4_0, 64, 6, 6, 0},
                  {"q4_k", WeightType::q4_k, 256, 70, 70, 0},
                  {"q8_0_second_half_of_a_fused_tensor", WeightType::q8_0, 32, 8, 16, 8}};
    for (const auto& impl : kExpertLinear)
        for (const auto& c : kCases)
            for (const int pairs_per_row : {kUsed, 1}) {
                SCOPED_TRACE(impl.name + " " + c.name + " " + std::to_string(pairs_per_row));
                const WeightBytes weights(c.type, c.n_in, kExperts * c.rows_per_expert, 8);
                ExpertMatrices experts{weights.matrix(), kExperts, 0};
                experts.first.n_out = c.n_out;
                experts.first.data += c.first_row * experts.first.row_bytes;
                experts.expert_stride_bytes = c.rows_per_expert * experts.first.row_bytes;
                std::vector<std::int32_t> ids;
                for (int p = 0; p < kRows * kUsed; ++p) ids.push_back((p * 7 + p / 3) % kExperts);
                std::int32_t active[kExperts], begin[kExperts + 1], pairs[kRows * kUsed];
                const ExpertGroups groups =
                    group_by_expert(ids.data(), kRows * kUsed, kExperts, active, begin, pairs);
                const auto x =
                    random_values(static_cast<std::size_t>(kRows * kUsed / pairs_per_row * c.n_in), 9);
                const auto seen = impl.is_exact ? x : as_quantised(x, c.type);
                std::vector<double> want;
                for (int p = 0; p < kRows * kUsed; ++p)
                    for (std::int64_t o = 0; o < c.n_out; ++o) {
                        double sum = 0;
                        for (std::int64_t i = 0; i < c.n_in; ++i)
                            sum += static_cast<double>(weights.value(
                                       ids[static_cast<std::size_t>(p)] * c.rows_per_expert + c.first_row + o,
                                       i)) *
                                   seen[static_cast<std::size_t>(p / pairs_per_row * c.n_in + i)];
                        want.push_back(sum);
                    }
                with_teams(impl, [&](Exec& exec) {
                    Guarded y(want.size());
                    Input in(x, c.n_in);
                    impl.op(exec, experts, groups, in.rows, pairs_per_row, y.data());
                    expect_close(y.vector(), want, impl.rounding);
                });
            }
}

TEST(SwigluTest, GateGoesThroughSiluAndUpDoesNot) {
    for (const auto& impl : kSwiglu)
        for (const std::size_t n : {1u, 37u, 5000u})
            with_teams(impl, [&](Exec& exec) {
                const auto gate = random_values(n, 1, -6, 6), up = random_values(n, 2, -2, 2);
                std::vector<double> want;
                for (std::size_t i = 0; i < n; ++i) want.push_back(silu(gate[i]) * up[i]);
                Guarded y(n);
                impl.op(exec, gate.data(), up.data(), y.data(), static_cast<std::int64_t>(n));
                expect_close(y.vector(), want, impl.rounding);
                Guarded in_place(gate);
                impl.op(exec, in_place.data(), up.data(), in_place.data(), static_cast<std::int64_t>(n));
                EXPECT_EQ(in_place.vector(), y.vector());
            });
}

TEST(MoeCombineTest, WeighsRoutedExpertsAndGatesTheSharedOne) {
    const struct { int n_rows, n_used, n; } kCases[] = {{1, 2, 64}, {5, 1, 33}, {3, 8, 7}};
    for (const auto& impl : kCombine)
        for (const auto& c : kCases) {
            const auto size = [](int n) { return static_cast<std::size_t>(n); };
            const auto routed = random_values(size(c.n_rows * c.n_used * c.n), 1);
            const auto weights = random_values(size(c.n_rows * c.n_used), 2, 0, 1);
            const auto shared = random_values(size(c.n_rows * c.n), 3);
            const auto gate = random_values(size(c.n_rows), 4, -4, 4);
            std::vector<double> want;
            for (int r = 0; r < c.n_rows; ++r)
                for (int i = 0; i < c.n; ++i) {
                    double sum = sigmoid(gate[size(r)]) * shared[size(r * c.n + i)];
                    for (int j = 0; j < c.n_used; ++j)
                        sum += static_cast<double>(weights[size(r * c.n_used + j)]) *
                               routed[size((r * c.n_used + j) * c.n + i)];
                    want.push_back(sum);
                }
            with_teams(impl, [&](Exec& exec) {
                Guarded y(want.size());
                impl.op(exec, routed.data(), weights.data(), shared.data(), gate.data(), y.data(), c.n_rows,
                        c.n_used, c.n);
                expect_close(y.vector(), want, impl.rounding);
            });
        }
}

}  // namespace
}  // namespace pantheon::kernels::test

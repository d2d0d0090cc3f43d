#include "kernels/linear/linear.h"

#include <cstring>

#include "kernels/linear/add_rows.h"
#include "kernels/linear/embed_rows.h"
#include "kernels/quant/dequantize.h"
#include "tests/kernels/kernel_test.h"
#include "tests/kernels/weight_bytes.h"

namespace pantheon::kernels::test {
namespace {

constexpr Impl<Linear> kLinear[] = {{"ref", linear_ref}};
constexpr Impl<EmbedRows> kEmbed[] = {{"ref", embed_rows_ref}};
constexpr Impl<AddRows> kAdd[] = {{"ref", add_rows_ref}};

struct Case {
    const char* name;
    WeightType type;
    std::int64_t n_in, n_out;
    int n_rows;
};
constexpr Case kCases[] = {
    {"decode", WeightType::f32, 256, 70, 1},   {"odd", WeightType::f32, 37, 19, 5},
    {"one_output", WeightType::f16, 64, 1, 3}, {"bf16", WeightType::bf16, 33, 8, 2},
    {"q8_0", WeightType::q8_0, 96, 33, 7},     {"q4_0", WeightType::q4_0, 64, 17, 2},
    {"q6_k", WeightType::q6_k, 512, 9, 3},     {"no_rows", WeightType::f32, 8, 8, 0},
};

TEST(LinearTest, MatchesTheDoubleProductForEveryKindOfType) {
    for (const auto& impl : kLinear)
        for (const Case& c : kCases) {
            SCOPED_TRACE(std::string(impl.name) + " " + c.name);
            const WeightBytes weights(c.type, c.n_in, c.n_out, 11);
            const auto x = random_values(static_cast<std::size_t>(c.n_rows * c.n_in), 12);
            std::vector<double> want;
            for (int r = 0; r < c.n_rows; ++r)
                for (std::int64_t o = 0; o < c.n_out; ++o) {
                    double sum = 0;
                    for (std::int64_t i = 0; i < c.n_in; ++i)
                        sum += static_cast<double>(weights.value(o, i)) *
                               x[static_cast<std::size_t>(r * c.n_in + i)];
                    want.push_back(sum);
                }
            with_teams([&](Exec& exec) {
                Guarded y(want.size());
                impl.op(exec, weights.matrix(), x.data(), y.data(), c.n_rows);
                expect_close(y.vector(), want, tol::rounded_once);
            });
        }
}

TEST(LinearTest, ARowHasTheSameBitsAloneAndAmongOthers) {
    for (const auto& impl : kLinear)
        with_teams([&](Exec& exec) {
            const WeightBytes weights(WeightType::q4_0, 64, 40, 5);
            const auto x = random_values(9 * 64, 6);
            Guarded all(9 * 40), alone(40);
            impl.op(exec, weights.matrix(), x.data(), all.data(), 9);
            for (std::size_t r = 0; r < 9; ++r) {
                impl.op(exec, weights.matrix(), x.data() + r * 64, alone.data(), 1);
                ASSERT_EQ(std::memcmp(alone.data(), all.data() + r * 40, 40 * sizeof(float)), 0)
                    << "row " << r;
            }
        });
}

TEST(LinearTest, LongSumsCancelAsInDouble) {
    // 1e8 + many small values − 1e8: an f32 accumulator loses all of them.
    for (const auto& impl : kLinear)
        with_teams([&](Exec& exec) {
            std::vector<float> w(2048, 1.0f), x(2048, 1e-3f);
            x.front() = 1e8f;
            x.back() = -1e8f;
            const WeightMatrix matrix{WeightType::f32, reinterpret_cast<const std::byte*>(w.data()), 2048, 1,
                                      2048 * 4};
            Guarded y(1);
            impl.op(exec, matrix, x.data(), y.data(), 1);
            EXPECT_NEAR(y[0], 2.046, 1e-5);
        });
}

TEST(EmbedRowsTest, GathersRowsExactly) {
    for (const auto& impl : kEmbed)
        for (const WeightType type : {WeightType::f32, WeightType::q8_0, WeightType::bf16})
            with_teams([&](Exec& exec) {
                const WeightBytes table(type, 64, 10, 3);
                const std::vector<std::int32_t> ids = {9, 0, 4, 4};
                Guarded y(ids.size() * 64);
                impl.op(exec, table.matrix(), ids.data(), y.data(), static_cast<int>(ids.size()));
                for (std::size_t r = 0; r < ids.size(); ++r)
                    for (std::size_t i = 0; i < 64; ++i)
                        ASSERT_EQ(y[r * 64 + i], table.value(ids[r], static_cast<std::int64_t>(i)));
            });
}

TEST(AddRowsTest, AddsInPlace) {
    for (const auto& impl : kAdd)
        with_teams([&](Exec& exec) {
            const auto a = random_values(40000, 1), b = random_values(40000, 2);
            Guarded x(a);
            impl.op(exec, x.data(), b.data(), 40000);
            for (std::size_t i = 0; i < a.size(); ++i) ASSERT_EQ(x[i], a[i] + b[i]);
        });
}

}  // namespace
}  // namespace pantheon::kernels::test

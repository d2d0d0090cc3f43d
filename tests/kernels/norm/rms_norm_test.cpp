#include "kernels/norm/rms_norm.h"

#include "tests/kernels/kernel_test.h"

namespace pantheon::kernels::test {
namespace {

const auto kImpls = host_impls<RmsNorm>(rms_norm_ref, rms_norm_cpu);

struct Case {
    const char* name;
    int n_rows, n;
    std::int64_t stride;
};
constexpr Case kCases[] = {
    {"decode", 1, 2048, 2048}, {"odd", 3, 257, 257}, {"one", 2, 1, 1}, {"strided", 6, 32, 64}};

TEST(RmsNormTest, MatchesTheFormulaOnEveryShape) {
    for (const auto& impl : kImpls)
        for (const Case& c : kCases) {
            SCOPED_TRACE(impl.name + " " + c.name);
            const auto x = random_values(static_cast<std::size_t>(c.n_rows * c.stride), 1, -3, 3);
            const auto w = random_values(static_cast<std::size_t>(c.n), 2, 0.5, 1.5);
            constexpr float kEps = 1e-6f;
            std::vector<double> want;
            for (int r = 0; r < c.n_rows; ++r) {
                double squares = 0;
                for (int i = 0; i < c.n; ++i)
                    squares += std::pow(x[static_cast<std::size_t>(r * c.stride + i)], 2);
                for (int i = 0; i < c.n; ++i)
                    want.push_back(x[static_cast<std::size_t>(r * c.stride + i)] /
                                   std::sqrt(squares / c.n + kEps) * w[static_cast<std::size_t>(i)]);
            }
            with_teams(impl, [&](Exec& exec) {
                Guarded y(want.size());
                impl.op(exec, x.data(), c.stride, w.data(), y.data(), c.n_rows, c.n, kEps);
                expect_close(y.vector(), want, impl.rounding);
            });
        }
}

TEST(RmsNormTest, EpsilonStandsInsideTheRoot) {
    for (const auto& impl : kImpls)
        with_teams(impl, [&](Exec& exec) {
            const std::vector<float> x(4, 1e-3f), w(4, 1.0f);
            Guarded y(4);
            impl.op(exec, x.data(), 4, w.data(), y.data(), 1, 4, 1e-6f);
            EXPECT_NEAR(y[0], 1 / std::sqrt(2.0), 1e-6);  // mean of squares equals eps
        });
}

TEST(RmsNormTest, WorksInPlaceAndOnZeros) {
    for (const auto& impl : kImpls)
        with_teams(impl, [&](Exec& exec) {
            Guarded y(std::vector<float>{3, 4, 0, 0});
            const float w[] = {1, 2};
            impl.op(exec, y.data(), 2, w, y.data(), 2, 2, 1e-6f);
            expect_close(y.vector(), std::vector<double>{3 / std::sqrt(12.5), 8 / std::sqrt(12.5), 0, 0},
                         1e-6);
        });
}

}  // namespace
}  // namespace pantheon::kernels::test

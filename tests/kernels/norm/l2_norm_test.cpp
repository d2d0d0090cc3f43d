#include "kernels/norm/l2_norm.h"

#include "tests/kernels/kernel_test.h"

namespace pantheon::kernels::test {
namespace {

const auto kImpls = host_impls<L2Norm>(l2_norm_ref, l2_norm_cpu);

struct Case {
    const char* name;
    int n_tokens, n_heads, head_dim;
    std::int64_t stride;
};
constexpr Case kCases[] = {
    {"dense", 3, 4, 16, 64}, {"one_head", 2, 1, 7, 7}, {"between_other_data", 5, 2, 10, 33}};

TEST(L2NormTest, EveryHeadHasLengthOneAndItsDirection) {
    for (const auto& impl : kImpls)
        for (const Case& c : kCases) {
            SCOPED_TRACE(impl.name + " " + c.name);
            const auto x = random_values(static_cast<std::size_t>(c.n_tokens * c.stride), 3, -2, 2);
            with_teams(impl, [&](Exec& exec) {
                Guarded y(x);
                impl.op(exec, y.data(), c.stride, c.n_tokens, c.n_heads, c.head_dim, 1e-6f);
                for (int t = 0; t < c.n_tokens; ++t)
                    for (std::int64_t i = 0; i < c.stride; ++i) {
                        const std::size_t at = static_cast<std::size_t>(t * c.stride + i);
                        if (i >= c.n_heads * c.head_dim) {
                            ASSERT_EQ(y[at], x[at]) << "what lies between tokens was touched";
                            continue;
                        }
                        const std::size_t head = at - static_cast<std::size_t>(i % c.head_dim);
                        double squares = 0;
                        for (int j = 0; j < c.head_dim; ++j)
                            squares += std::pow(x[head + static_cast<std::size_t>(j)], 2);
                        ASSERT_NEAR(y[at], x[at] / std::sqrt(squares), impl.rounding);
                    }
            });
        }
}

TEST(L2NormTest, EpsilonIsAFloorOfTheLength) {
    for (const auto& impl : kImpls)
        with_teams(impl, [&](Exec& exec) {
            Guarded y(std::vector<float>{3e-8f, 4e-8f, 0, 0});
            impl.op(exec, y.data(), 2, 2, 1, 2, 1e-6f);
            expect_close(y.vector(), std::vector<double>{0.03, 0.04, 0, 0}, 1e-6);
        });
}

}  // namespace
}  // namespace pantheon::kernels::test

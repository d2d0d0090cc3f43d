#include "kernels/quant/half_values.h"

#include <bit>
#include <random>

#include "tests/kernels/kernel_test.h"

namespace pantheon::kernels::test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr std::uint16_t kGuard = 0x1234;

std::vector<std::uint16_t> narrow(const Impl<NarrowToHalf>& impl, const std::vector<float>& x) {
    ThreadTeam team(2);
    Exec exec(team, impl.isa);
    std::vector<std::uint16_t> y(x.size() + 1, kGuard);
    impl.op(exec, x.data(), y.data(), static_cast<std::int64_t>(x.size()));
    EXPECT_EQ(y.back(), kGuard) << "nothing is written behind the end";
    y.pop_back();
    return y;
}

std::vector<float> widen(const Impl<WidenHalf>& impl, const std::vector<std::uint16_t>& x) {
    ThreadTeam team(2);
    Exec exec(team, impl.isa);
    std::vector<float> y(x.size() + 1, 7.0f);
    impl.op(exec, x.data(), y.data(), static_cast<std::int64_t>(x.size()));
    EXPECT_EQ(y.back(), 7.0f) << "nothing is written behind the end";
    y.pop_back();
    return y;
}

TEST(NarrowToHalfTest, RoundsLikeOneValueAloneWhateverTheLength) {
    std::mt19937 random(3);
    for (const auto& impl : host_impls<NarrowToHalf>(narrow_to_half_ref, narrow_to_half_cpu)) {
        SCOPED_TRACE(impl.name);
        for (const std::size_t n : {0, 1, 7, 8, 9, 15, 16, 1000, 70001}) {
            std::vector<float> x(n);
            for (float& f : x) {
                f = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
                while (!(std::fabs(f) <= kLargestHalf))
                    f = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
            }
            const auto y = narrow(impl, x);
            for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(y[i], float_to_half(x[i])) << x[i] << " of " << n;
        }
    }
}

TEST(NarrowToHalfTest, WhatIsFiniteStaysFiniteAndWhatIsNotBecomesNaN) {
    constexpr float kLargest = std::numeric_limits<float>::max();
    const std::vector<float> x = {65504, 65520, 70000, kLargest, -65520, -kLargest, kInf,
                                  -kInf, kNan,  -0.0f, 1e-9f,    -1e-9f, 6e-8f};
    for (const auto& impl : host_impls<NarrowToHalf>(narrow_to_half_ref, narrow_to_half_cpu)) {
        SCOPED_TRACE(impl.name);
        const auto y = narrow(impl, x);
        for (const std::size_t i : {0, 1, 2, 3}) EXPECT_EQ(half_to_float(y[i]), kLargestHalf);
        for (const std::size_t i : {4, 5}) EXPECT_EQ(half_to_float(y[i]), -kLargestHalf);
        for (const std::size_t i : {6, 7, 8}) EXPECT_TRUE(std::isnan(half_to_float(y[i])));
        EXPECT_EQ(y[9], 0x8000);
        EXPECT_EQ(y[10], 0);
        EXPECT_EQ(y[11], 0x8000);
        EXPECT_EQ(y[12], 1);
    }
}

TEST(WidenHalfTest, IsExactAndNarrowingGivesItBack) {
    std::vector<std::uint16_t> x;
    for (std::uint32_t h = 0; h < 0x10000; ++h)
        if ((h & 0x7C00) != 0x7C00) x.push_back(static_cast<std::uint16_t>(h));
    x.resize(x.size() - 3);  // not a multiple of eight
    for (const auto& impl : host_impls<WidenHalf>(widen_half_ref, widen_half_cpu)) {
        SCOPED_TRACE(impl.name);
        const auto y = widen(impl, x);
        for (std::size_t i = 0; i < x.size(); ++i)
            ASSERT_EQ(std::bit_cast<std::uint32_t>(y[i]), std::bit_cast<std::uint32_t>(half_to_float(x[i])));
        for (const auto& back : host_impls<NarrowToHalf>(narrow_to_half_ref, narrow_to_half_cpu))
            EXPECT_EQ(narrow(back, y), x) << back.name;
    }
}

}  // namespace
}  // namespace pantheon::kernels::test

#include "kernels/linear/linear.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "kernels/linear/add_rows.h"
#include "kernels/linear/embed_rows.h"
#include "kernels/quant/dequantize.h"
#include "tests/kernels/activations.h"
#include "tests/kernels/kernel_test.h"
#include "tests/kernels/weight_bytes.h"

namespace pantheon::kernels::test {
namespace {

const auto kLinear = host_impls<Linear>(linear_ref, linear_cpu);
const auto kEmbed = host_impls<EmbedRows>(embed_rows_ref);
const auto kAdd = host_impls<AddRows>(add_rows_ref);

struct Case {
    const char* name;
    WeightType type;
    std::int64_t n_in, n_out;
    int n_rows;
};
constexpr Case kCases[] = {
    {"decode", WeightType::f32, 256, 70, 1},     {"odd", WeightType::f32, 37, 19, 5},
    {"one_output", WeightType::f16, 64, 1, 3},   {"bf16", WeightType::bf16, 33, 8, 2},
    {"q8_0", WeightType::q8_0, 96, 33, 7},       {"q4_0", WeightType::q4_0, 64, 17, 2},
    {"q4_1", WeightType::q4_1, 64, 17, 3},       {"q5_0", WeightType::q5_0, 96, 9, 2},
    {"q5_1", WeightType::q5_1, 96, 9, 1},        {"q2_k", WeightType::q2_k, 512, 9, 3},
    {"q3_k", WeightType::q3_k, 512, 9, 3},       {"q4_k", WeightType::q4_k, 512, 17, 4},
    {"q5_k", WeightType::q5_k, 256, 9, 1},       {"q6_k", WeightType::q6_k, 512, 9, 3},
    {"iq1_s", WeightType::iq1_s, 512, 9, 2},     {"iq1_m", WeightType::iq1_m, 512, 9, 2},
    {"iq2_xxs", WeightType::iq2_xxs, 512, 9, 2}, {"iq2_xs", WeightType::iq2_xs, 512, 9, 2},
    {"iq2_s", WeightType::iq2_s, 512, 9, 2},     {"iq3_xxs", WeightType::iq3_xxs, 512, 9, 2},
    {"iq3_s", WeightType::iq3_s, 512, 9, 2},     {"iq4_nl", WeightType::iq4_nl, 64, 9, 9},
    {"iq4_xs", WeightType::iq4_xs, 512, 9, 8},   {"mxfp4", WeightType::mxfp4, 64, 9, 2},
    {"no_rows", WeightType::f32, 8, 8, 0},
};

TEST(LinearTest, MatchesTheDoubleProductForEveryType) {
    for (const auto& impl : kLinear)
        for (const Case& c : kCases) {
            SCOPED_TRACE(c.name);
            const WeightBytes weights(c.type, c.n_in, c.n_out, 11);
            const auto x = random_values(static_cast<std::size_t>(c.n_rows * c.n_in), 12);
            const auto seen = impl.is_exact ? x : as_quantised(x, c.type);
            std::vector<double> want;
            for (int r = 0; r < c.n_rows; ++r)
                for (std::int64_t o = 0; o < c.n_out; ++o) {
                    double sum = 0;
                    for (std::int64_t i = 0; i < c.n_in; ++i)
                        sum += static_cast<double>(weights.value(o, i)) *
                               seen[static_cast<std::size_t>(r * c.n_in + i)];
                    want.push_back(sum);
                }
            with_teams(impl, [&](Exec& exec) {
                Guarded y(want.size());
                Input in(x, c.n_in);
                impl.op(exec, weights.matrix(), in.rows, y.data());
                expect_close(y.vector(), want, impl.rounding);
            });
        }
}

TEST(LinearTest, EveryInstructionSetGivesTheSameBitsForEveryTypeAndColumnCount) {
    for (const Case& c : kCases)
        for (int n_rows = 1; n_rows <= 17; n_rows += n_rows < 9 ? 1 : 8) {
            SCOPED_TRACE(std::string(c.name) + " rows " + std::to_string(n_rows));
            const WeightBytes weights(c.type, c.n_in, 21, 11);
            const auto x = random_values(static_cast<std::size_t>(n_rows * c.n_in), 13, -3, 3);
            std::vector<float> want;
            for (const CpuIsa isa : cpu_isas()) {
                ThreadTeam team(1);
                Exec exec(team, isa);
                Guarded y(static_cast<std::size_t>(n_rows) * 21);
                Input in(x, c.n_in);
                linear_cpu(exec, weights.matrix(), in.rows, y.data());
                if (want.empty()) want = y.vector();
                EXPECT_EQ(y.vector(), want) << cpu_isa_name(isa);
            }
        }
}

constexpr Case kPanelCases[] = {
    {"q3_k", WeightType::q3_k, 768, 37, 0},      {"q4_k", WeightType::q4_k, 768, 37, 0},
    {"q5_k", WeightType::q5_k, 512, 37, 0},      {"q6_k", WeightType::q6_k, 768, 37, 0},
    {"iq4_xs", WeightType::iq4_xs, 512, 37, 0},  {"q8_0", WeightType::q8_0, 256, 37, 0},
    {"odd_blocks", WeightType::q8_0, 96, 16, 0}, {"one_row", WeightType::q4_k, 256, 1, 0},
};

TEST(LinearTest, PackedPanelsGiveTheBitsOfRowsForEveryColumnCount) {
    for (const Case& c : kPanelCases)
        for (int n_rows = 1; n_rows <= 9; ++n_rows) {
            SCOPED_TRACE(std::string(c.name) + " rows " + std::to_string(n_rows));
            const WeightBytes weights(c.type, c.n_in, c.n_out, 21);
            const auto x = random_values(static_cast<std::size_t>(n_rows * c.n_in), 23, -3, 3);
            const std::size_t n_results = static_cast<std::size_t>(n_rows * c.n_out);
            const auto run = [&](CpuIsa isa, const WeightMatrix& matrix) {
                ThreadTeam team(2);
                Exec exec(team, isa);
                Guarded y(n_results);
                Input in(x, c.n_in);
                linear_cpu(exec, matrix, in.rows, y.data());
                return y.vector();
            };
            const auto want = run(CpuIsa::scalar, weights.matrix());
            for (const CpuIsa isa : cpu_isas()) {
                if (panel_rows(isa) == 0) continue;
                const PackedBytes packed(weights.matrix(), isa);
                EXPECT_EQ(run(isa, packed.matrix()), want) << cpu_isa_name(isa);
                // Panels of another width are not for this instruction set: it falls back to the rows.
                for (const CpuIsa other : cpu_isas()) EXPECT_EQ(run(other, packed.matrix()), want);
            }
        }
}

TEST(LinearTest, ExtremeWeightsAndActivationsDoNotOverflowInPanels) {
    // Bytes of all ones make the largest quants; activations at full scale, all of one sign.
    for (const Case& c : kPanelCases)
        for (const int fill : {0x00, 0x7F, 0x80, 0xFF}) {
            SCOPED_TRACE(std::string(c.name) + " bytes " + std::to_string(fill));
            const WeightBytes weights(c.type, c.n_in, c.n_out, 21);
            std::vector<std::byte> bytes(static_cast<std::size_t>(weights.matrix().row_bytes * c.n_out),
                                         static_cast<std::byte>(fill));
            WeightMatrix matrix = weights.matrix();
            matrix.data = bytes.data();
            for (const float sign : {1.0f, -1.0f}) {
                Input in(std::vector<float>(static_cast<std::size_t>(c.n_in), sign), c.n_in);
                for (const CpuIsa isa : cpu_isas()) {
                    if (panel_rows(isa) == 0) continue;
                    ThreadTeam team(1);
                    Exec exec(team, isa);
                    Guarded y(static_cast<std::size_t>(c.n_out)), packed_y(static_cast<std::size_t>(c.n_out));
                    linear_cpu(exec, matrix, in.rows, y.data());
                    const auto bits = [](const Guarded<>& values) {
                        const auto floats = values.vector();
                        std::vector<std::uint32_t> words(floats.size());
                        std::memcpy(words.data(), floats.data(), floats.size() * sizeof(float));
                        for (std::size_t i = 0; i < words.size(); ++i)
                            if (std::isnan(floats[i])) words[i] = 0x7FC00000;  // which NaN does not matter
                        return words;
                    };
                    const PackedBytes packed(matrix, isa);
                    linear_cpu(exec, packed.matrix(), in.rows, packed_y.data());
                    EXPECT_EQ(bits(packed_y), bits(y)) << cpu_isa_name(isa);
                }
            }
        }
}

TEST(LinearTest, ARowHasTheSameBitsAloneAndAmongOthers) {
    for (const auto& impl : kLinear)
        for (const Case& c : kCases)
            with_teams(impl, [&](Exec& exec) {
                SCOPED_TRACE(c.name);
                constexpr std::size_t kRows = 11, kOut = 40;
                const WeightBytes weights(c.type, c.n_in, kOut, 5);
                const std::size_t n_in = static_cast<std::size_t>(c.n_in);
                const auto x = random_values(kRows * n_in, 6);
                Guarded all(kRows * kOut), alone(kOut);
                Input in(x, c.n_in);
                impl.op(exec, weights.matrix(), in.rows, all.data());
                for (std::size_t r = 0; r < kRows; ++r) {
                    Input one({x.begin() + static_cast<std::ptrdiff_t>(r * n_in),
                               x.begin() + static_cast<std::ptrdiff_t>((r + 1) * n_in)},
                              c.n_in);
                    impl.op(exec, weights.matrix(), one.rows, alone.data());
                    ASSERT_EQ(std::memcmp(alone.data(), all.data() + r * kOut, kOut * sizeof(float)), 0)
                        << "row " << r;
                }
            });
}

TEST(LinearTest, WhatIsNotFiniteStaysVisible) {
    for (const auto& impl : kLinear)
        for (const WeightType type : {WeightType::f32, WeightType::q8_0, WeightType::q4_k})
            for (const float bad :
                 {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()})
                with_teams(impl, [&](Exec& exec) {
                    const WeightBytes weights(type, 512, 9, 5);
                    auto x = random_values(512, 6);
                    x[300] = bad;
                    Guarded y(9);
                    Input in(x, 512);
                    impl.op(exec, weights.matrix(), in.rows, y.data());
                    for (const float value : y.vector()) EXPECT_FALSE(std::isfinite(value));
                });
}

TEST(LinearTest, AnInputOfZerosGivesZeros) {
    for (const auto& impl : kLinear)
        for (const Case& c : kCases)
            with_teams(impl, [&](Exec& exec) {
                const WeightBytes weights(c.type, c.n_in, 9, 5);
                Guarded y(9);
                Input in(std::vector<float>(static_cast<std::size_t>(c.n_in), 0.0f), c.n_in);
                impl.op(exec, weights.matrix(), in.rows, y.data());
                for (const float value : y.vector()) EXPECT_EQ(value, 0.0f);
            });
}

TEST(LinearTest, LongSumsOfTheReferenceCancelAsInDouble) {
    // 1e8 + many small values − 1e8: an f32 accumulator loses all of them.
    for (const auto& impl : kLinear) {
        if (!impl.is_exact) continue;
        with_teams(impl, [&](Exec& exec) {
            std::vector<float> w(2048, 1.0f), x(2048, 1e-3f);
            x.front() = 1e8f;
            x.back() = -1e8f;
            const WeightMatrix matrix{WeightType::f32, reinterpret_cast<const std::byte*>(w.data()), 2048, 1,
                                      2048 * 4};
            Guarded y(1);
            Input in(x, 2048);
            impl.op(exec, matrix, in.rows, y.data());
            EXPECT_NEAR(y[0], 2.046, 1e-5);
        });
    }
}

TEST(ActivationRowsTest, BothWidthsRoundHalfToEvenAndHaveTheScaleOfLeastError) {
    for (const CpuIsa isa : cpu_isas())
        for (const int width : {32, 256}) {
            SCOPED_TRACE(std::string(cpu_isa_name(isa)) + " " + std::to_string(width));
            std::vector<float> x = random_values(768, 3, -5, 5);
            x[5] = 127;  // one step of block 0 is 1, so halves are ties
            x[6] = 2.5f, x[7] = 3.5f, x[8] = -2.5f;
            ThreadTeam team(2);
            Exec exec(team, isa);
            Input in(x, 256);
            const QuantisedRows& rows = in.rows.quantised(exec, width);
            EXPECT_EQ(&rows, &in.rows.quantised(exec, width));
            EXPECT_EQ(rows.q(0)[6], 2);
            EXPECT_EQ(rows.q(0)[7], 4);
            EXPECT_EQ(rows.q(0)[8], -2);
            for (int r = 0; r < 3; ++r) {
                const float* values = x.data() + 256 * r;
                for (int first = 0; first < 256; first += width) {
                    double max_abs = 0, with_x = 0, with_q = 0;
                    for (int i = first; i < first + width; ++i)
                        max_abs = std::max(max_abs, std::fabs(1.0 * values[i]));
                    for (int i = first; i < first + width; ++i) {
                        const int q = rows.q(r)[i];
                        ASSERT_NEAR(q, 127 * values[i] / max_abs, 0.5001);
                        with_x += static_cast<double>(values[i]) * q;
                        with_q += q * q;
                    }
                    ASSERT_NEAR(rows.d(r)[first / width] / (with_x / with_q), 1, 1e-6);
                }
                const auto sum_of = [&](int first, int n) {
                    return std::accumulate(rows.q(r) + first, rows.q(r) + first + n, 0);
                };
                for (int s = 0; width == 256 && s < 16; ++s) ASSERT_EQ(rows.sums(r)[s], sum_of(16 * s, 16));
                for (int s = 0; s < 8; ++s)
                    ASSERT_EQ(rows.sums(r)[width == 256 ? 16 + s : s], sum_of(32 * s, 32));
            }
        }
}

TEST(EmbedRowsTest, GathersRowsExactly) {
    for (const auto& impl : kEmbed)
        for (const WeightType type : {WeightType::f32, WeightType::q8_0, WeightType::bf16})
            with_teams(impl, [&](Exec& exec) {
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
        with_teams(impl, [&](Exec& exec) {
            const auto a = random_values(40000, 1), b = random_values(40000, 2);
            Guarded x(a);
            impl.op(exec, x.data(), b.data(), 40000);
            for (std::size_t i = 0; i < a.size(); ++i) ASSERT_EQ(x[i], a[i] + b[i]);
        });
}

}  // namespace
}  // namespace pantheon::kernels::test

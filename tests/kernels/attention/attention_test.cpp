#include "kernels/attention/attention.h"

#include <cstring>

#include "kernels/attention/kv_append.h"
#include "kernels/attention/output_gate.h"
#include "kernels/attention/rope.h"
#include "kernels/quant/dequantize.h"
#include "tests/kernels/kernel_test.h"

namespace pantheon::kernels::test {
namespace {

const auto kRope = host_impls<Rope>(rope_ref, rope_cpu);
const auto kAppend = host_impls<KvAppend>(kv_append_ref);
const auto kAttention = host_impls<Attention>(attention_ref, attention_cpu);
const auto kGate = host_impls<OutputGate>(output_gate_ref, output_gate_cpu);

std::size_t size(std::int64_t n) {
    return static_cast<std::size_t>(n);
}

// ---- Rope ----

TEST(RopeTest, TurnsPairsHalfTheRotatedWidthApart) {
    for (const auto& impl : kRope)
        with_teams(impl, [&](Exec& exec) {
            // Head of 6, 4 rotated: pairs (0, 2) and (1, 3); 4 and 5 pass through.
            const RopeParams params{4, 100.0, 1.0, {1, 1, 0, 0}};
            Guarded x(std::vector<float>{1, 1, 0, 0, 7, 8});
            const std::int32_t pos = 3;
            impl.op(exec, params, x.data(), &pos, 1, 1, 6);
            const double slow = 3 * std::pow(100.0, -0.5);
            expect_close(
                x.vector(),
                std::vector<double>{std::cos(3.0), std::cos(slow), std::sin(3.0), std::sin(slow), 7, 8},
                impl.rounding);
        });
}

TEST(RopeTest, MatchesTheFormulaAtEveryPositionAndHead) {
    const struct {
        const char* name;
        int n_heads, head_dim, rope_dim;
        double base, scale;
        std::array<int, 4> sections;
    } kCases[] = {{"published", 2, 256, 64, 1e7, 1, {11, 11, 10, 0}},
                  {"whole_head", 3, 10, 10, 1e4, 1, {2, 2, 1, 0}},
                  {"one_pair", 1, 5, 2, 1e4, 0.25, {1, 0, 0, 0}},
                  {"uncovered", 2, 32, 16, 1e7, 1, {2, 2, 1, 3}},
                  {"sections_wrap_around", 1, 40, 40, 1e6, 1, {2, 1, 1, 1}}};
    const std::vector<std::int32_t> pos = {0, 1, 17, 4095, 262143};
    for (const auto& impl : kRope)
        for (const auto& c : kCases) {
            SCOPED_TRACE(impl.name + " " + c.name);
            const auto x = random_values(pos.size() * size(c.n_heads * c.head_dim), 5);
            std::vector<double> want(x.begin(), x.end());
            for (std::size_t row = 0; row < pos.size() * size(c.n_heads); ++row)
                for (int i = 0; i < c.rope_dim / 2; ++i) {
                    const int sector = i % (c.sections[0] + c.sections[1] + c.sections[2] + c.sections[3]);
                    const bool turns = (sector % 3 == 0 && sector < 3 * c.sections[0]) ||
                                       (sector % 3 == 1 && sector < 3 * c.sections[1]) ||
                                       (sector % 3 == 2 && sector < 3 * c.sections[2]);
                    const double theta = turns ? pos[row / size(c.n_heads)] * c.scale *
                                                     std::exp(-2.0 * i / c.rope_dim * std::log(c.base))
                                               : 0;
                    double& a = want[row * size(c.head_dim) + size(i)];
                    double& b = want[row * size(c.head_dim) + size(i + c.rope_dim / 2)];
                    const double turned = a * std::cos(theta) - b * std::sin(theta);
                    b = a * std::sin(theta) + b * std::cos(theta);
                    a = turned;
                }
            with_teams(impl, [&](Exec& exec) {
                const RopeParams params{c.rope_dim, c.base, c.scale, c.sections};
                Guarded y(x);
                impl.op(exec, params, y.data(), pos.data(), static_cast<int>(pos.size()), c.n_heads,
                        c.head_dim);
                expect_close(y.vector(), want, impl.rounding);
            });
        }
}

// ---- pages ----

/// Pages for one sequence, each with guards of its own.
class Pages {
  public:
    Pages(KvRowType type, int n_head_kv, int head_dim, int n_rows)
        : type_(type), heads_(n_head_kv), dim_(head_dim) {
        const int n_pages = (n_rows + kKvPageRows - 1) / kKvPageRows * n_head_kv;
        for (int i = 0; i < n_pages; ++i)
            pages_.emplace_back(kv_page_bytes(type, head_dim) + 2 * kGuard, kFill);
        for (auto& page : pages_) table_.push_back(page.data() + kGuard);
    }
    ~Pages() {
        for (const auto& page : pages_)
            for (std::size_t i = 0; i < kGuard; ++i) {
                EXPECT_EQ(page[i], kFill);
                EXPECT_EQ(page[page.size() - 1 - i], kFill);
            }
    }
    KvView view() const {
        KvView view;
        view.type = type_, view.n_head_kv = heads_, view.head_dim = dim_, view.pages = table_.data();
        return view;
    }

  private:
    static constexpr std::size_t kGuard = 64;
    static constexpr std::byte kFill{0xEE};
    KvRowType type_;
    int heads_, dim_;
    std::vector<std::vector<std::byte>> pages_;
    std::vector<std::byte*> table_;
};

TEST(KvAppendTest, WritesEachRowWhereItsPositionSays) {
    constexpr int kHeads = 3, kDim = 5, kRows = 6;
    const auto k = random_values(kRows * kHeads * kDim, 1), v = random_values(kRows * kHeads * kDim, 2);
    for (const auto& impl : kAppend)
        for (const KvRowType type : {KvRowType::f32, KvRowType::f16})
            with_teams(impl, [&](Exec& exec) {
                const Pages first(type, kHeads, kDim, 130), second(type, kHeads, kDim, 64);
                const AttentionRun runs[] = {{0, 4, 62, first.view()},
                                             {4, 2, 0, second.view()}};  // crosses a page
                impl.op(exec, runs, 2, k.data(), v.data());
                for (const AttentionRun& run : runs)
                    for (int j = 0; j < run.n_rows; ++j)
                        for (int h = 0; h < kHeads; ++h)
                            for (int i = 0; i < kDim; ++i) {
                                const std::size_t at = size(((run.first_row + j) * kHeads + h) * kDim + i);
                                const auto read = [&](const std::byte* row) {
                                    if (type == KvRowType::f32) {
                                        float value;
                                        std::memcpy(&value, row + 4 * i, 4);
                                        return value;
                                    }
                                    std::uint16_t half;
                                    std::memcpy(&half, row + 2 * i, 2);
                                    return half_to_float(half);
                                };
                                const double tolerance = type == KvRowType::f32 ? 0 : 0.0005;
                                ASSERT_NEAR(read(run.kv.k_row(run.pos + j, h)), k[at], tolerance);
                                ASSERT_NEAR(read(run.kv.v_row(run.pos + j, h)), v[at], tolerance);
                            }
            });
}

// ---- Attention ----

struct Case {
    const char* name;
    int n_head, n_head_kv, head_dim;
    std::vector<std::pair<int, int>> runs;  // pos, n_rows
};
const Case kCases[] = {
    {"first_token", 4, 2, 32, {{0, 1}}},
    {"prefill", 4, 2, 16, {{0, 70}}},
    {"one_kv_head", 5, 1, 12, {{9, 3}}},
    {"own_heads", 3, 3, 7, {{63, 3}}},
    {"batch", 6, 3, 8, {{0, 3}, {100, 1}, {5, 2}}},
    {"long", 2, 1, 16, {{1500, 1}}},
};

TEST(AttentionTest, MatchesTheFormulaOnEveryShape) {
    for (const auto& impl : kAttention)
        for (const KvRowType type : {KvRowType::f32, KvRowType::f16})
            for (const Case& c : kCases) {
                SCOPED_TRACE(impl.name + " " + c.name + (type == KvRowType::f16 ? " f16" : ""));
                // Fill the caches through the append op, as f16 values when that is what the pages hold.
                ThreadTeam one(1);
                Exec filler(one);
                std::vector<std::unique_ptr<Pages>> pages;
                std::vector<AttentionRun> runs;
                std::vector<std::vector<float>> keys, values;
                int n_rows = 0;
                for (const auto& [pos, n] : c.runs) {
                    const int total = pos + n;
                    pages.push_back(std::make_unique<Pages>(type, c.n_head_kv, c.head_dim, total));
                    keys.push_back(
                        random_values(size(total * c.n_head_kv * c.head_dim), 10 + pages.size(), -2, 2));
                    values.push_back(random_values(keys.back().size(), 20 + pages.size()));
                    if (type == KvRowType::f16)
                        for (auto* data : {&keys.back(), &values.back()})
                            for (float& x : *data) x = half_to_float(float_to_half(x));
                    const AttentionRun fill{0, total, 0, pages.back()->view()};
                    kv_append_ref(filler, &fill, 1, keys.back().data(), values.back().data());
                    runs.push_back({n_rows, n, pos, pages.back()->view()});
                    n_rows += n;
                }
                const auto q = random_values(size(n_rows * c.n_head * c.head_dim), 30, -2, 2);
                std::vector<double> want;
                for (std::size_t s = 0; s < runs.size(); ++s)
                    for (int j = 0; j < runs[s].n_rows; ++j)
                        for (int h = 0; h < c.n_head; ++h) {
                            const int g = h / (c.n_head / c.n_head_kv);
                            const std::size_t at =
                                size(((runs[s].first_row + j) * c.n_head + h) * c.head_dim);
                            std::vector<double> p;
                            double sum = 0;
                            for (int r = 0; r <= runs[s].pos + j; ++r) {
                                double score = 0;
                                for (int i = 0; i < c.head_dim; ++i)
                                    score += static_cast<double>(q[at + size(i)]) *
                                             keys[s][size((r * c.n_head_kv + g) * c.head_dim + i)];
                                p.push_back(std::exp(score / std::sqrt(static_cast<double>(c.head_dim))));
                                sum += p.back();
                            }
                            for (int i = 0; i < c.head_dim; ++i) {
                                double out = 0;
                                for (std::size_t r = 0; r < p.size(); ++r)
                                    out += p[r] / sum *
                                           values[s][(r * size(c.n_head_kv) + size(g)) * size(c.head_dim) +
                                                     size(i)];
                                want.push_back(out);
                            }
                        }
                with_teams(impl, [&](Exec& exec) {
                    Guarded y(q.size());
                    impl.op(exec, runs.data(), static_cast<int>(runs.size()), q.data(), y.data(), c.n_head);
                    expect_close(y.vector(), want, impl.rounding);
                });
            }
}

TEST(AttentionTest, LargeScoresDoNotOverflow) {
    for (const auto& impl : kAttention)
        with_teams(impl, [&](Exec& exec) {
            const Pages pages(KvRowType::f32, 1, 1, 2);
            const float k[] = {3000, 3001}, v[] = {1, 2}, q = 1;
            const AttentionRun fill{0, 2, 0, pages.view()};
            kv_append_ref(exec, &fill, 1, k, v);
            const AttentionRun run{0, 1, 1, pages.view()};
            float y;
            impl.op(exec, &run, 1, &q, &y, 1);
            EXPECT_NEAR(y, 1 + sigmoid(1), 1e-6);
        });
}

// ---- OutputGate ----

TEST(OutputGateTest, MultipliesBySigmoidOfItsOwnGate) {
    constexpr int kRows = 9, kDim = 7, kStride = 14;
    const auto x = random_values(kRows * kDim, 1), gate = random_values(kRows * kStride, 2, -6, 6);
    std::vector<double> want;
    for (std::size_t r = 0; r < kRows; ++r)
        for (std::size_t i = 0; i < kDim; ++i)
            want.push_back(x[r * kDim + i] * sigmoid(gate[r * kStride + i]));
    for (const auto& impl : kGate)
        with_teams(impl, [&](Exec& exec) {
            Guarded y(x);
            impl.op(exec, y.data(), gate.data(), kStride, kRows, kDim);
            expect_close(y.vector(), want, impl.rounding);
        });
}

}  // namespace
}  // namespace pantheon::kernels::test

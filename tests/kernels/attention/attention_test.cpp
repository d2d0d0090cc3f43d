#include "kernels/attention/attention.h"

#include <cstring>
#include <memory>

#include "kernels/attention/kv_append.h"
#include "kernels/attention/kv_rows.h"
#include "kernels/attention/output_gate.h"
#include "kernels/attention/rope.h"
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

// ---- rows ----

constexpr KvRowType kTypes[] = {KvRowType::f32, KvRowType::f16, KvRowType::q8_0, KvRowType::q4_0};
const char* const kTypeNames[] = {"f32", "f16", "q8_0", "q4_0"};

std::string name_of(KvRowType type) {
    return kTypeNames[static_cast<int>(type)];
}

std::vector<float> stored(KvRowType type, const std::vector<float>& x) {
    const int n = static_cast<int>(x.size());
    Guarded<float> back(x.size());
    std::vector<std::byte> row(kv_row_bytes(type, n) + 1, std::byte{0xEE});
    store_kv_row(type, x.data(), n, row.data());
    EXPECT_EQ(row.back(), std::byte{0xEE});
    load_kv_row(type, row.data(), n, back.data());
    return back.vector();
}

TEST(KvRowTest, SizesAreThoseOfBlocksOf32) {
    EXPECT_EQ(kv_row_bytes(KvRowType::f32, 256), 1024U);
    EXPECT_EQ(kv_row_bytes(KvRowType::f16, 256), 512U);
    EXPECT_EQ(kv_row_bytes(KvRowType::q8_0, 256), 272U);
    EXPECT_EQ(kv_row_bytes(KvRowType::q4_0, 256), 144U);
    EXPECT_EQ(kv_row_bytes(KvRowType::q4_0, 33), 36U);
}

TEST(KvRowTest, NoValueIsFartherOffThanTheStepsOfItsBlockAllow) {
    for (const KvRowType type : kTypes)
        for (const std::size_t n : {1U, 7U, 32U, 40U, 256U}) {
            SCOPED_TRACE(name_of(type) + " " + std::to_string(n));
            const auto x = random_values(n, 3, -4, 4);
            const auto back = stored(type, x);
            for (std::size_t i = 0; i < n; ++i) {
                float largest = 0;
                for (std::size_t j = i / 32 * 32; j < std::min(n, i / 32 * 32 + 32); ++j)
                    largest = std::max(largest, std::fabs(x[j]));
                // The step itself is rounded to f16; q4_0 ends at 7 steps on one side, and may cut off there.
                const float steps[] = {0, std::fabs(x[i]) / 2048, largest / 127 * 0.56F, largest / 8 * 1.8F};
                ASSERT_LE(std::fabs(back[i] - x[i]), steps[static_cast<int>(type)]) << i;
            }
        }
}

TEST(KvRowTest, Q8RoundsHalfToEvenAndKeepsTheLargestValue) {
    std::vector<float> x(32, 0.0F);
    x[0] = 127, x[1] = 0.5F, x[2] = 1.5F, x[3] = -2.5F, x[31] = -127;
    std::vector<float> want(32, 0.0F);
    want[0] = 127, want[2] = 2, want[3] = -2, want[31] = -127;
    EXPECT_EQ(stored(KvRowType::q8_0, x), want);
}

TEST(KvRowTest, Q4KeepsWhatLiesOnItsGridAndIsOtherwiseBetterThanThePlainScale) {
    std::vector<float> grid;
    for (int i = 0; i < 32; ++i) grid.push_back(0.25F * static_cast<float>(i % 16 - 8));
    EXPECT_EQ(stored(KvRowType::q4_0, grid), grid);
    double error = 0, plain_error = 0;
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        // Sums of uniform values: a bell.
        auto x = random_values(32, seed), more = random_values(32, seed + 500),
             third = random_values(32, seed + 900);
        float largest = 0;
        for (std::size_t i = 0; i < 32; ++i) {
            x[i] += more[i] + third[i];
            if (std::fabs(x[i]) > std::fabs(largest)) largest = x[i];
        }
        const auto back = stored(KvRowType::q4_0, x);
        const float d = largest / -8;
        for (std::size_t i = 0; i < 32; ++i) {
            const float plain = d * std::clamp(std::nearbyint(x[i] / d), -8.0F, 7.0F);
            error += std::pow(static_cast<double>(back[i]) - x[i], 2);
            plain_error += std::pow(static_cast<double>(plain) - x[i], 2);
        }
    }
    EXPECT_LT(error, 0.93 * plain_error);
}

TEST(KvRowTest, ZerosStayZeroAndWhatIsNotFiniteShows) {
    for (const KvRowType type : kTypes) {
        SCOPED_TRACE(name_of(type));
        EXPECT_EQ(stored(type, std::vector<float>(40, 0.0F)), std::vector<float>(40, 0.0F));
        for (const float bad :
             {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
            std::vector<float> x(64, 0.0F);
            x[40] = -8, x[5] = bad;
            const auto back = stored(type, x);
            EXPECT_FALSE(std::isfinite(back[5]));
            EXPECT_NEAR(back[40], -8, 0.01) << "another block";
        }
    }
}

// ---- pages ----

/// How a sequence is kept.
struct Keeping {
    KvRowType type = KvRowType::f32;
    int sink = 0, window = 0;
    int reach = 0;

    bool keeps_half() const { return type == KvRowType::q4_0 && (sink > 0 || window > 0); }
    bool is_read(int p, int r) const { return r < sink || reach == 0 || r > p - reach; }
    bool is_half(int p, int r) const { return keeps_half() && (r < sink || p - r < window); }
    std::string name() const {
        return name_of(type) + " sink " + std::to_string(sink) + " window " + std::to_string(window) +
               " reach " + std::to_string(reach);
    }
};

/// Pages for one sequence, each with guards of its own.
class Pages {
  public:
    Pages(const Keeping& keeping, int n_head_kv, int head_dim, int n_rows)
        : keeping_(keeping), heads_(n_head_kv), dim_(head_dim) {
        const int n_pages = (n_rows + kKvPageRows - 1) / kKvPageRows * n_head_kv;
        for (int i = 0; i < n_pages; ++i) {
            table_.push_back(new_page(keeping.type));
            if (keeping.keeps_half()) halves_.push_back(new_page(KvRowType::f16));
        }
    }
    ~Pages() {
        for (const auto& page : pages_)
            for (std::size_t i = 0; i < kGuard; ++i) {
                EXPECT_EQ((*page)[i], kFill);
                EXPECT_EQ((*page)[page->size() - 1 - i], kFill);
            }
    }
    KvView view() const {
        KvView view;
        view.type = keeping_.type, view.n_head_kv = heads_, view.head_dim = dim_, view.pages = table_.data();
        if (!halves_.empty()) view.half_pages = halves_.data();
        view.sink = keeping_.sink, view.window = keeping_.window, view.reach = keeping_.reach;
        return view;
    }
    /// Pages that the query at p does not read end up nowhere: f16 ones, and hidden ones leave the tables.
    KvView view_at(int p) {
        KvView view = this->view();
        const auto heads = size(heads_);
        for (std::size_t page = 0; page * heads < halves_.size(); ++page) {
            const int begin = static_cast<int>(page) * kKvPageRows, end = begin + kKvPageRows;
            if (begin >= keeping_.sink && end <= p - keeping_.window + 1)
                for (std::size_t head = 0; head < heads; ++head) halves_[page * heads + head] = nullptr;
        }
        if (keeping_.reach == 0) return view;
        view.first_gone = (keeping_.sink + kKvPageRows - 1) / kKvPageRows;
        view.n_gone = std::max<std::int64_t>(0, (p - keeping_.reach + 1) / kKvPageRows - view.first_gone);
        for (auto* table : {&table_, &halves_})
            if (!table->empty())
                table->erase(table->begin() + view.first_gone * heads_,
                             table->begin() + (view.first_gone + view.n_gone) * heads_);
        return view;
    }

  private:
    static constexpr std::size_t kGuard = 64;
    static constexpr std::byte kFill{0xEE};
    std::byte* new_page(KvRowType type) {
        const std::size_t n = kv_page_bytes(type, dim_) + 2 * kGuard;
        pages_.push_back(std::make_unique<std::vector<std::byte>>(n, kFill));
        return pages_.back()->data() + kGuard;
    }

    Keeping keeping_;
    int heads_, dim_;
    std::vector<std::unique_ptr<std::vector<std::byte>>> pages_;
    std::vector<std::byte*> table_, halves_;
};

TEST(KvAppendTest, WritesEachRowWhereItsPositionSays) {
    constexpr int kHeads = 3, kDim = 40, kRows = 6;
    const auto k = random_values(kRows * kHeads * kDim, 1), v = random_values(kRows * kHeads * kDim, 2);
    const Keeping kKept[] = {
        {KvRowType::f32}, {KvRowType::f16}, {KvRowType::q8_0}, {KvRowType::q4_0}, {KvRowType::q4_0, 4, 2}};
    for (const auto& impl : kAppend)
        for (const Keeping& keeping : kKept)
            with_teams(impl, [&](Exec& exec) {
                SCOPED_TRACE(keeping.name());
                const Pages first(keeping, kHeads, kDim, 130), second(keeping, kHeads, kDim, 64);
                const AttentionRun runs[] = {{0, 4, 62, first.view()},
                                             {4, 2, 0, second.view()}};  // crosses a page
                impl.op(exec, runs, 2, k.data(), v.data());
                const auto expect_row = [&](KvRowType type, const std::byte* row, const float* x) {
                    const std::vector<float> values(x, x + kDim);
                    std::vector<float> have(kDim);
                    load_kv_row(type, row, kDim, have.data());
                    ASSERT_EQ(have, stored(type, values));
                };
                for (const AttentionRun& run : runs)
                    for (int j = 0; j < run.n_rows; ++j)
                        for (int h = 0; h < kHeads; ++h) {
                            const std::size_t at = size(((run.first_row + j) * kHeads + h) * kDim);
                            const int r = run.pos + j;
                            expect_row(keeping.type, run.kv.k_row(r, h), k.data() + at);
                            expect_row(keeping.type, run.kv.v_row(r, h), v.data() + at);
                            if (!keeping.keeps_half()) continue;
                            expect_row(KvRowType::f16, run.kv.half_k_row(r, h), k.data() + at);
                            expect_row(KvRowType::f16, run.kv.half_v_row(r, h), v.data() + at);
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
    {"eight_heads", 16, 2, 40, {{600, 20}, {130, 1}}},
};
const Keeping kKeepings[] = {
    {KvRowType::f32},           {KvRowType::f16},
    {KvRowType::q8_0},          {KvRowType::q4_0},
    {KvRowType::q4_0, 16, 128}, {KvRowType::q4_0, 0, 1},
    {KvRowType::q4_0, 70, 0},   {KvRowType::f16, 3, 0, 50},
    {KvRowType::f32, 0, 0, 64}, {KvRowType::q4_0, 5, 30, 90},
};

/// The sequences of a case, kept and as the formula sees them.
struct Sequences {
    Sequences(const Case& c, const Keeping& keeping) : keeping_(keeping), case_(c) {
        ThreadTeam one(1);
        Exec filler(one);
        for (const auto& [pos, n] : c.runs) {
            const int total = pos + n;
            pages.push_back(std::make_unique<Pages>(keeping, c.n_head_kv, c.head_dim, total));
            const auto k = random_values(size(total * c.n_head_kv * c.head_dim), 10 + pages.size(), -2, 2);
            const auto v = random_values(k.size(), 20 + pages.size());
            as_kept_.push_back({read(k, keeping.type), read(v, keeping.type)});
            in_half_.push_back({read(k, KvRowType::f16), read(v, KvRowType::f16)});
            const AttentionRun fill{0, total, 0, pages.back()->view()};
            kv_append_ref(filler, &fill, 1, k.data(), v.data());
            runs.push_back({n_rows, n, pos, pages.back()->view_at(pos)});
            n_rows += n;
        }
        q = random_values(size(n_rows * c.n_head * c.head_dim), 30, -2, 2);
    }

    std::vector<double> formula() const {
        const auto& c = case_;
        std::vector<double> want;
        for (std::size_t s = 0; s < runs.size(); ++s)
            for (int j = 0; j < runs[s].n_rows; ++j)
                for (int h = 0; h < c.n_head; ++h) {
                    const int g = h / (c.n_head / c.n_head_kv), p = runs[s].pos + j;
                    const std::size_t at = size(((runs[s].first_row + j) * c.n_head + h) * c.head_dim);
                    std::vector<double> out(size(c.head_dim));
                    double sum = 0;
                    for (int r = 0; r <= p; ++r) {
                        if (!keeping_.is_read(p, r)) continue;
                        const Read& read = keeping_.is_half(p, r) ? in_half_[s] : as_kept_[s];
                        const std::size_t row = size((r * c.n_head_kv + g) * c.head_dim);
                        const float *k = read.k.data() + row, *v = read.v.data() + row;
                        double score = 0;
                        for (std::size_t i = 0; i < out.size(); ++i)
                            score += static_cast<double>(q[at + i]) * k[i];
                        const double weight = std::exp(score / std::sqrt(static_cast<double>(c.head_dim)));
                        sum += weight;
                        for (std::size_t i = 0; i < out.size(); ++i) out[i] += weight * v[i];
                    }
                    for (const double x : out) want.push_back(x / sum);
                }
        return want;
    }

    std::vector<std::unique_ptr<Pages>> pages;
    std::vector<AttentionRun> runs;
    std::vector<float> q;
    int n_rows = 0;

  private:
    struct Read {
        std::vector<float> k, v;
    };
    /// What comes back of the rows.
    std::vector<float> read(const std::vector<float>& rows, KvRowType type) const {
        std::vector<float> all;
        for (auto at = rows.begin(); at != rows.end(); at += case_.head_dim)
            for (const float x : stored(type, {at, at + case_.head_dim})) all.push_back(x);
        return all;
    }
    Keeping keeping_;
    Case case_;
    std::vector<Read> as_kept_, in_half_;
};

void reserve_for(const Case& c, Exec& exec) {
    int most = 0;
    for (const auto& [pos, n] : c.runs) most = std::max(most, pos + n);
    exec.reserve_scratch(attention_scratch_bytes(most, c.head_dim, c.n_head / c.n_head_kv));
}

TEST(AttentionTest, MatchesTheFormulaOnEveryShapeAndInEveryFormat) {
    for (const Keeping& keeping : kKeepings)
        for (const Case& c : kCases) {
            const Sequences kept(c, keeping);
            const auto want = kept.formula();
            for (const auto& impl : kAttention) {
                SCOPED_TRACE(impl.name + " " + c.name + " " + keeping.name());
                with_teams(impl, [&](Exec& exec) {
                    reserve_for(c, exec);
                    Guarded y(kept.q.size());
                    impl.op(exec, kept.runs.data(), static_cast<int>(kept.runs.size()), kept.q.data(),
                            y.data(), c.n_head);
                    expect_close(y.vector(), want, impl.rounding);
                });
            }
        }
}

TEST(AttentionTest, AQueryHasTheSameBitsHoweverItsRunIsCut) {
    for (const Keeping& keeping : kKeepings)
        for (const auto& impl : kAttention) {
            SCOPED_TRACE(impl.name + " " + keeping.name());
            // Several chunks of the grid, or a few rows where each takes long. A sequence that has let go of
            // rows cannot begin at 0.
            Case c{"", 12, 2, 40, {{0, 600}}};
            if (keeping.reach > 0 || keeping.keeps_half()) c.runs = {{450, 150}};
            if (impl.is_exact || impl.isa == CpuIsa::scalar) c = {"", 4, 2, 16, {{70, 30}}};
            const Sequences kept(c, keeping);
            const AttentionRun& all = kept.runs[0];
            std::vector<float> want;
            with_teams(impl, [&](Exec& exec) {
                reserve_for(c, exec);
                for (const int chunk : {all.n_rows, 1, 7, 64}) {
                    std::vector<float> y(kept.q.size());
                    for (int j = 0; j < all.n_rows; j += chunk) {
                        const AttentionRun run{j, std::min(chunk, all.n_rows - j), all.pos + j, all.kv};
                        impl.op(exec, &run, 1, kept.q.data(), y.data(), c.n_head);
                    }
                    if (want.empty()) want = y;
                    ASSERT_EQ(std::memcmp(y.data(), want.data(), y.size() * sizeof(float)), 0) << chunk;
                }
            });
        }
}

TEST(AttentionTest, LargeScoresDoNotOverflow) {
    for (const auto& impl : kAttention)
        with_teams(impl, [&](Exec& exec) {
            exec.reserve_scratch(attention_scratch_bytes(2, 1, 1));
            const Pages pages({KvRowType::f32}, 1, 1, 2);
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

// kv.overflow = "slide": past n_ctx a query reads the sink and the last rows, and memory stays as it is. What
// it must give comes from a sequence that keeps all its rows, with the mask laid over each query.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/model/qwen35moe/stepper.h"

namespace pantheon::test {
namespace {

using model::Backend;
using model::KvFormat;
using model::KvOverflow;
using model::KvSettings;
using model::StepRun;
using model::WantLogits;

constexpr int kContext = 150, kSink = 5;

/// Attention over rows that are all there, of which a query at p reads r < kSink and r > p − (kContext −
/// kSink).
template <kernels::Attention* kAttention>
void masked(kernels::Exec& exec, const kernels::AttentionRun* runs, int n_runs, const float* q, float* y,
            int n_head) {
    std::vector<kernels::AttentionRun> all(runs, runs + n_runs);
    for (kernels::AttentionRun& run : all) {
        run.kv.sink = kSink;
        run.kv.reach = kContext - kSink;
    }
    kAttention(exec, all.data(), n_runs, q, y, n_head);
}

struct Setting {
    const char* name;
    Backend backend;
    KvFormat format;
    int window;
};

class SlideTest : public testing::TestWithParam<Setting> {
  protected:
    KvSettings kv(KvOverflow overflow) const {
        return {GetParam().format, kSink, GetParam().window, overflow};
    }
    Stepper sliding(int n_threads = 1) const {
        return Stepper(tiny_, n_threads, kv(KvOverflow::slide), 2, kContext, GetParam().backend);
    }
    Rows wanted() const {
        model::Ops ops = model::ops_for(GetParam().backend);
        ops.attention = GetParam().backend == Backend::ref ? masked<kernels::attention_ref>
                                                           : masked<kernels::attention_cpu>;
        return Stepper(tiny_, 1, kv(KvOverflow::stop), 1, 4 * kContext, GetParam().backend, &ops)
            .sequence(SlotId{0}, tokens_, 64);
    }
    static void expect_same(const std::vector<float>& have, const std::vector<float>& want, std::size_t t) {
        ASSERT_EQ(have.size(), want.size());
        ASSERT_EQ(std::memcmp(have.data(), want.data(), have.size() * sizeof(float)), 0) << "position " << t;
    }

    const TinyModel tiny_ = tiny_model();
    const std::vector<std::int32_t> tokens_ = random_tokens(100 + 3 * kContext, tiny_.shape.n_vocab, 1);
};

TEST_P(SlideTest, ThreeContextsOfTokensAreWhatTheMaskGivesAndTakeNoMoreMemory) {
    const Rows want = wanted();
    Stepper steps = sliding(2);
    ASSERT_TRUE(steps.slots.bind(SlotId{1}));
    for (const auto& row : steps.step({steps.run_of(SlotId{1}, tokens_, 0, 100, WantLogits::last)}))
        expect_same(row, want[99], 99);
    std::uint64_t most_before = 0;
    for (std::size_t t = 100; t < tokens_.size(); ++t) {
        expect_same(steps.step({steps.run_of(SlotId{1}, tokens_, t, t + 1)})[0], want[t], t);
        const std::uint64_t used = steps.slots.kv_used_bytes();
        // Where pages begin relative to the last rows differs from row to row and comes round every two
        // pages.
        if (t < kContext + 128)
            most_before = std::max(most_before, used);
        else
            ASSERT_LE(used, most_before) << "position " << t;
    }
    EXPECT_EQ(steps.slots.length(SlotId{1}), static_cast<std::int32_t>(tokens_.size()));
}

TEST_P(SlideTest, AReplayInChunksGivesTheSameBits) {
    const Rows want = wanted();
    for (const std::size_t chunk : {7u, 64u, 512u}) {
        SCOPED_TRACE(chunk);
        const Rows have = sliding(3).sequence(SlotId{0}, tokens_, chunk);
        for (std::size_t t = 0; t < want.size(); ++t) expect_same(have[t], want[t], t);
    }
}

TEST_P(SlideTest, CheckpointsAreTakenUpToTheContextAndServeBeyondIt) {
    const Rows want = wanted();
    Stepper steps = sliding();
    ASSERT_TRUE(steps.slots.bind(SlotId{0}));
    (void)steps.step({steps.run_of(SlotId{0}, tokens_, 0, kContext)});
    const auto kept = steps.slots.snapshot(SlotId{0});
    ASSERT_TRUE(kept);
    (void)steps.step({steps.run_of(SlotId{0}, tokens_, kContext, kContext + 90)});
    EXPECT_EQ(steps.slots.snapshot(SlotId{0}).error().code(), Code::failed_precondition);
    ASSERT_TRUE(steps.slots.restore(SlotId{1}, **kept));
    std::size_t t = kContext;
    for (const auto& row : steps.step({steps.run_of(SlotId{1}, tokens_, t, t + 200)})) {
        expect_same(row, want[t], t);
        ++t;
    }
}

INSTANTIATE_TEST_SUITE_P(Formats, SlideTest,
                         testing::Values(Setting{"ref_f32", Backend::ref, KvFormat::f32, 0},
                                         Setting{"ref_q4_0", Backend::ref, KvFormat::q4_0, 20},
                                         Setting{"cpu_f16", Backend::cpu, KvFormat::f16, 0},
                                         Setting{"cpu_q8_0", Backend::cpu, KvFormat::q8_0, 0},
                                         Setting{"cpu_q4_0", Backend::cpu, KvFormat::q4_0, 20}),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace pantheon::test

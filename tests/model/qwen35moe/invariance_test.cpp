// The logits at a position depend on the tokens up to it and on nothing else: the same bits whatever the
// chunking, the thread count, the slot, and what else is in the step.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/model/qwen35moe/stepper.h"

namespace pantheon::test {
namespace {

using model::Backend;
using model::KvFormat;
using model::KvSettings;
using model::StepRun;
using model::WantLogits;

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void expect_same_rows(const Rows& have, const Rows& want) {
    ASSERT_EQ(have.size(), want.size());
    for (std::size_t t = 0; t < want.size(); ++t)
        ASSERT_TRUE(same_bits(have[t], want[t])) << "position " << t;
}

struct Setting {
    TinyShape shape;
    KvSettings kv;
    const char* kv_name;
    Backend backend;
};

class InvarianceTest : public testing::TestWithParam<Setting> {
  protected:
    const TinyShape& shape() const { return GetParam().shape; }
    Stepper stepper(int n_threads) const {
        return Stepper(tiny_, n_threads, GetParam().kv, 8, 640, GetParam().backend);
    }
    const TinyModel tiny_ = tiny_model(shape());
    // Enough for a chunk of 512 and several pages of KV where that is quick.
    const std::vector<std::int32_t> tokens_ =
        random_tokens(GetParam().backend == Backend::ref ? 100 : 530, shape().n_vocab, 1);
};

TEST_P(InvarianceTest, SameBitsForEveryChunkAndThreadCount) {
    const Rows want = stepper(1).sequence(SlotId{0}, tokens_, tokens_.size());
    for (const std::size_t chunk : {1u, 7u, 64u, 512u})
        for (const int n_threads : {1, 2, 3}) {
            SCOPED_TRACE("chunk " + std::to_string(chunk) + ", threads " + std::to_string(n_threads));
            expect_same_rows(stepper(n_threads).sequence(SlotId{2}, tokens_, chunk), want);
        }
}

TEST_P(InvarianceTest, SameBitsAloneAndAmongSevenOthers) {
    const Rows want = stepper(1).sequence(SlotId{0}, tokens_, tokens_.size());
    Stepper steps = stepper(2);
    // Slot 5 is followed; the others have other tokens and lengths, some prefill and some decode beside it.
    std::vector<std::vector<std::int32_t>> others(8);
    for (int s = 0; s < 8; ++s) {
        ASSERT_TRUE(steps.slots.bind(SlotId{s}));
        others[static_cast<std::size_t>(s)] =
            random_tokens(200, shape().n_vocab, static_cast<std::uint64_t>(s) + 50);
    }
    std::vector<std::size_t> at(8, 0);
    Rows have;
    for (std::size_t t = 0, round = 0; t < tokens_.size(); ++round) {
        const std::size_t n = std::min(tokens_.size() - t, round % 3 == 0 ? std::size_t{1} : 3 + round % 20);
        std::vector<StepRun> runs;
        std::size_t first = 0;  // logits rows before ours
        for (std::size_t s = 0; s < 8; ++s) {
            const SlotId slot{static_cast<std::int32_t>(s)};
            if (s == 5) {
                runs.push_back(steps.run_of(slot, tokens_, t, t + n));
                continue;
            }
            const std::size_t others_n = (round + s) % 4 == 0 ? 0 : (round * 3 + s) % 9 + 1;
            if (others_n == 0 || at[s] + others_n > 200) continue;
            const WantLogits want_logits = s % 3 == 0 ? WantLogits::none : WantLogits::last;
            runs.push_back(steps.run_of(slot, others[s], at[s], at[s] + others_n, want_logits));
            at[s] += others_n;
            if (s < 5 && want_logits == WantLogits::last) ++first;
        }
        const Rows rows = steps.step(runs);
        have.insert(have.end(), rows.begin() + static_cast<std::ptrdiff_t>(first),
                    rows.begin() + static_cast<std::ptrdiff_t>(first + n));
        t += n;
    }
    expect_same_rows(have, want);
}

TEST_P(InvarianceTest, SameBitsWhicheverRowsAreWanted) {
    const Rows want = stepper(1).sequence(SlotId{0}, tokens_, tokens_.size());
    Stepper steps = stepper(1);
    ASSERT_TRUE(steps.slots.bind(SlotId{0}));
    EXPECT_TRUE(steps.step({steps.run_of(SlotId{0}, tokens_, 0, 40, WantLogits::none)}).empty());
    const Rows last = steps.step({steps.run_of(SlotId{0}, tokens_, 40, 60, WantLogits::last)});
    ASSERT_EQ(last.size(), 1u);
    EXPECT_TRUE(same_bits(last[0], want[59]));
    const Rows all = steps.step({steps.run_of(SlotId{0}, tokens_, 60, 63, WantLogits::all)});
    ASSERT_EQ(all.size(), 3u);
    EXPECT_TRUE(same_bits(all[1], want[61]));
}

TEST_P(InvarianceTest, SameBitsAfterASlotWasMovedOrUsedBefore) {
    Rows want = stepper(1).sequence(SlotId{0}, tokens_, tokens_.size());
    want.resize(100);
    Stepper steps = stepper(1);
    // Slot 3 has held another sequence, slot 4 holds one that stays.
    (void)steps.sequence(SlotId{3}, random_tokens(90, shape().n_vocab, 77), 30);
    (void)steps.sequence(SlotId{4}, random_tokens(20, shape().n_vocab, 78), 30);
    steps.slots.release(SlotId{3});
    ASSERT_TRUE(steps.slots.bind(SlotId{3}));
    Rows have = steps.step({steps.run_of(SlotId{3}, tokens_, 0, 70)});
    ASSERT_TRUE(steps.slots.move(SlotId{3}, SlotId{1}));
    ASSERT_TRUE(steps.slots.bind(SlotId{3}));  // somebody else moves in and works beside it
    const auto others = random_tokens(80, shape().n_vocab, 79);
    for (std::size_t t = 70; t < 100; ++t) {
        Rows rows = steps.step({steps.run_of(SlotId{3}, others, t - 70, t - 69, WantLogits::last),
                                steps.run_of(SlotId{1}, tokens_, t, t + 1)});
        have.push_back(std::move(rows[1]));
    }
    expect_same_rows(have, want);
}

TEST_P(InvarianceTest, SameBitsAfterAResumeFromACheckpoint) {
    const Rows want = stepper(1).sequence(SlotId{0}, tokens_, tokens_.size());
    Stepper steps = stepper(2);
    ASSERT_TRUE(steps.slots.bind(SlotId{0}));
    // The first sequence goes on past each checkpoint; others resume there, beside it, in other chunks.
    std::vector<std::pair<std::size_t, model::CheckpointPtr>> kept;
    std::size_t t = 0;
    for (const std::size_t end : {1u, 64u, 90u}) {
        (void)steps.step({steps.run_of(SlotId{0}, tokens_, t, end)});
        t = end;
        kept.emplace_back(t, *steps.slots.snapshot(SlotId{0}));
        // And once more, as it comes back from a disk.
        std::vector<std::byte> bytes;
        const auto codec =
            model::host_checkpoint_codec(model::state_shape(steps.weights().config(), GetParam().kv));
        ASSERT_TRUE(codec->encode(*kept.back().second, [&](std::span<const std::byte> more) {
            bytes.insert(bytes.end(), more.begin(), more.end());
            return Status();
        }));
        ASSERT_EQ(bytes.size(), codec->encoded_bytes(static_cast<std::int32_t>(t)));
        auto from = bytes.begin();
        kept.emplace_back(t, *codec->decode(static_cast<std::int32_t>(t), [&](std::span<std::byte> to) {
            std::copy_n(from, to.size(), to.begin());
            from += static_cast<std::ptrdiff_t>(to.size());
            return Status();
        }));
    }
    const auto others = random_tokens(40, shape().n_vocab, 91);
    for (const std::size_t chunk : {7u, 64u}) {
        for (const auto& [at, checkpoint] : kept) {
            SCOPED_TRACE("resumed at " + std::to_string(at) + " in chunks of " + std::to_string(chunk));
            const SlotId slot{3}, fork{4};
            steps.slots.release(slot);
            steps.slots.release(fork);
            ASSERT_TRUE(steps.slots.restore(slot, *checkpoint));
            ASSERT_TRUE(steps.slots.restore(fork, *checkpoint));
            Rows have(want.begin(), want.begin() + static_cast<std::ptrdiff_t>(at));
            for (std::size_t i = at; i < tokens_.size(); i += chunk) {
                const std::size_t end = std::min(i + chunk, tokens_.size());
                std::vector<StepRun> runs{steps.run_of(slot, tokens_, i, end)};
                if (i - at < others.size()) {  // another text from the same checkpoint
                    StepRun run = steps.run_of(fork, others, i - at, std::min(end - at, others.size()),
                                               WantLogits::none);
                    run.pos = static_cast<std::int32_t>(i);
                    runs.push_back(run);
                }
                for (auto& row : steps.step(runs)) have.push_back(std::move(row));
            }
            expect_same_rows(have, want);
        }
    }
}

/// Enough to meet every op and each KV format; all combinations would take minutes under the sanitizers.
std::vector<Setting> some_settings() {
    std::vector<Setting> settings;
    for (const Backend backend : {Backend::ref, Backend::cpu})
        for (const TinyShape& shape : all_tiny_shapes()) {
            if (shape.label == "fixture" || shape.label.starts_with("three_k_heads"))
                settings.push_back({shape, {KvFormat::f32}, "f32", backend});
            if (shape.label == "fixture" || shape.label == "quantised_mix_fused")
                settings.push_back({shape, {KvFormat::f16}, "f16", backend});
            if (shape.label != "fixture") continue;
            settings.push_back({shape, {KvFormat::q8_0}, "q8_0", backend});
            settings.push_back({shape, {KvFormat::q4_0, 0, 0}, "q4_0_alone", backend});
            settings.push_back({shape, {KvFormat::q4_0, 5, 20}, "q4_0", backend});
        }
    return settings;
}

INSTANTIATE_TEST_SUITE_P(Shapes, InvarianceTest, testing::ValuesIn(some_settings()), [](const auto& tested) {
    return tested.param.shape.label + "_" + tested.param.kv_name +
           (tested.param.backend == Backend::ref ? "_ref" : "_cpu");
});

TEST(CpuBackendTest, IsCloseToTheReferenceOnEveryShape) {
    for (const TinyShape& shape : all_tiny_shapes()) {
        SCOPED_TRACE(shape.label);
        const TinyModel tiny = tiny_model(shape);
        const auto tokens = random_tokens(40, shape.n_vocab, 5);
        const Rows exact = Stepper(tiny).sequence(SlotId{0}, tokens, 64);
        const Rows fast =
            Stepper(tiny, 1, {KvFormat::f32}, 8, 640, Backend::cpu).sequence(SlotId{0}, tokens, 64);
        double error = 0, power = 0;
        for (std::size_t t = 0; t < tokens.size(); ++t)
            for (std::size_t i = 0; i < exact[t].size(); ++i) {
                error += std::pow(static_cast<double>(exact[t][i]) - fast[t][i], 2);
                power += std::pow(static_cast<double>(exact[t][i]), 2);
            }
        // Float weights leave only f32 rounding; quantised ones round activations to 8 bits, and small models
        // with random weights do not average that out.
        EXPECT_LT(error / power, shape.types.empty() ? 1e-9 : 5e-2);
    }
}

double largest_difference(const Rows& a, const Rows& b) {
    double largest = 0;
    for (std::size_t t = 0; t < a.size(); ++t)
        for (std::size_t i = 0; i < a[t].size(); ++i)
            largest = std::max(largest, std::fabs(static_cast<double>(a[t][i]) - b[t][i]));
    return largest;
}

TEST(KvFormatTest, FewerBitsDifferMoreFromF32) {
    const TinyModel tiny = tiny_model();
    const auto tokens = random_tokens(120, tiny.shape.n_vocab, 5);
    for (const Backend backend : {Backend::ref, Backend::cpu}) {
        const auto rows = [&](const KvSettings& kv) {
            return Stepper(tiny, 1, kv, 8, 640, backend).sequence(SlotId{0}, tokens, 64);
        };
        const Rows exact = rows({KvFormat::f32}), half = rows({KvFormat::f16});
        const struct {
            KvSettings kv;
            double least, most;
        } kCases[] = {{{KvFormat::f16}, 1e-5, 1e-2},
                      {{KvFormat::q8_0}, 1e-4, 5e-2},
                      {{KvFormat::q4_0, 0, 0}, 5e-2, 1},
                      {{KvFormat::q4_0, 8, 20}, 1e-2, 1}};
        for (const auto& c : kCases) {
            SCOPED_TRACE(static_cast<int>(c.kv.format));
            const double difference = largest_difference(rows(c.kv), exact);
            EXPECT_GT(difference, c.least);
            EXPECT_LT(difference, c.most);
        }
        // A window over everything leaves nothing to q4_0.
        expect_same_rows(rows({KvFormat::q4_0, 0, 120}), half);
        expect_same_rows(rows({KvFormat::q4_0, 120, 0}), half);
    }
}

TEST(KvFormatTest, CpuReadsWhatRefReads) {
    const TinyModel tiny = tiny_model();
    const auto tokens = random_tokens(200, tiny.shape.n_vocab, 5);
    for (const KvSettings& kv :
         {KvSettings{KvFormat::q8_0}, KvSettings{KvFormat::q4_0, 0, 0}, KvSettings{KvFormat::q4_0, 16, 40}}) {
        const Rows exact = Stepper(tiny, 1, kv).sequence(SlotId{0}, tokens, 64);
        const Rows fast = Stepper(tiny, 2, kv, 8, 640, Backend::cpu).sequence(SlotId{0}, tokens, 64);
        // A value on the edge between two steps may fall to either side.
        EXPECT_LT(largest_difference(fast, exact), kv.format == KvFormat::q8_0 ? 5e-3 : 5e-2);
    }
}

TEST(NextnTest, TrunkLogitsAreTheSameWithAndWithoutTheBlock) {
    TinyModel with = tiny_model();
    TinyModel promised = with;
    promised.drop_tensors_of_block(4);
    TinyModel without = promised;
    without.drop_key("qwen35moe.nextn_predict_layers");
    without.set("qwen35moe.block_count", GgufTyped::u32(4));
    const Rows want = Stepper(with).sequence(SlotId{0}, golden_tokens(), 16);
    expect_same_rows(Stepper(promised).sequence(SlotId{0}, golden_tokens(), 16), want);
    expect_same_rows(Stepper(without).sequence(SlotId{0}, golden_tokens(), 16), want);
}

}  // namespace
}  // namespace pantheon::test

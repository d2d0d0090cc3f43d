// The executor with a KV pool of its own size, and with sequences in q4_0 beside those of the configured
// format.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "model/executor.h"
#include "model/qwen35moe/weights.h"
#include "tests/model/qwen35moe/stepper.h"

namespace pantheon::test {
namespace {

using model::Executor;
using model::ExecutorConfig;
using model::KvFormat;
using model::SequenceKv;

constexpr SlotId kA{0}, kB{1};

ExecutorConfig config_of(KvFormat format, std::uint64_t pool_bytes = 0) {
    ExecutorConfig config;
    config.backend = model::Backend::cpu;
    config.n_ctx = 400;
    config.n_slots = 2;
    config.kv = {format, 5, 30, model::KvOverflow::stop};
    config.kv_pool_bytes = pool_bytes;
    return config;
}

std::unique_ptr<Executor> make(const ExecutorConfig& config) {
    static const auto weights = *tiny_model().load();
    auto executor = Executor::create(weights, config);
    EXPECT_TRUE(executor);
    return std::move(*executor);
}

const std::vector<std::int32_t>& tokens() {
    static const auto tokens = random_tokens(300, tiny_model().shape.n_vocab, 3);
    return tokens;
}

/// Evaluates the next n tokens in one step; the logits of the last one, or nothing.
Result<std::vector<float>> feed(Executor& executor, SlotId slot, int n) {
    const auto begin = tokens().begin() + executor.length(slot);
    const model::StepRun run{slot, executor.length(slot), {begin, begin + n}, model::WantLogits::last};
    const auto logits = executor.step({&run, 1});
    if (!logits) return logits.error();
    const auto row = logits->row(0);
    return std::vector<float>(row.begin(), row.end());
}

TEST(KvPoolOfExecutorTest, AStepThatDoesNotFitGivesTheSameBitsOnceThereIsRoom) {
    const auto unlimited = make(config_of(KvFormat::f16));
    ASSERT_TRUE(unlimited->bind(kA));
    const auto first = *feed(*unlimited, kA, 60), second = *feed(*unlimited, kA, 100);
    const std::uint64_t block = unlimited->kv_used_bytes() / 3;
    const auto executor = make(config_of(KvFormat::f16, 4 * block));
    EXPECT_EQ(executor->kv_pool_bytes(), 4 * block);
    ASSERT_TRUE(executor->bind(kA));
    ASSERT_TRUE(executor->bind(kB));
    ASSERT_TRUE(feed(*executor, kB, 100));
    EXPECT_EQ(*feed(*executor, kA, 60), first);
    const auto full = feed(*executor, kA, 100);
    ASSERT_FALSE(full);
    EXPECT_EQ(full.error().code(), Code::resource_exhausted);
    EXPECT_EQ(executor->length(kA), 60);
    EXPECT_LE(executor->kv_used_bytes(), 4 * block);
    executor->release(kB);
    EXPECT_EQ(*feed(*executor, kA, 100), second);
}

TEST(KvPoolOfExecutorTest, ASequenceInQ4GivesWhatAnExecutorInQ4Gives) {
    for (const KvFormat format : {KvFormat::f32, KvFormat::f16, KvFormat::q8_0}) {
        const auto want = make(config_of(KvFormat::q4_0)), plain = make(config_of(format));
        const auto executor = make(config_of(format));
        ASSERT_TRUE(want->bind(kA));
        ASSERT_TRUE(plain->bind(kA));
        ASSERT_TRUE(executor->bind(kA, SequenceKv::q4_0));
        ASSERT_TRUE(executor->bind(kB));
        for (const int n : {70, 1, 100, 1}) {
            EXPECT_EQ(*feed(*executor, kA, n), *feed(*want, kA, n));
            EXPECT_EQ(*feed(*executor, kB, n), *feed(*plain, kA, n)) << "beside it nothing changes";
        }
        // And goes on so from its own checkpoint.
        const auto kept = *executor->snapshot(kA);
        executor->release(kB);
        ASSERT_TRUE(executor->restore(kB, *kept));
        EXPECT_EQ(*feed(*executor, kB, 20), *feed(*want, kA, 20));
    }
}

TEST(KvPoolOfExecutorTest, TheSizesOfCheckpointsAreThoseOfSequences) {
    const auto weights = *tiny_model().load();
    for (const KvFormat format : {KvFormat::f16, KvFormat::q4_0}) {
        const ExecutorConfig config = config_of(format);
        const model::CheckpointSizes sizes = model::checkpoint_sizes(*weights, config.kv);
        const auto executor = make(config);
        ASSERT_TRUE(executor->bind(kA));
        for (const int n : {1, 20, 50, 100, 120}) {
            ASSERT_TRUE(feed(*executor, kA, n));
            EXPECT_EQ(executor->kv_used_bytes(), sizes.kv_bytes(executor->length(kA)));
        }
    }
}

TEST(KvPoolOfExecutorTest, AConvertedSequenceStaysNearWhatItWasAndTakesLess) {
    const auto executor = make(config_of(KvFormat::f32)), exact = make(config_of(KvFormat::f32));
    ASSERT_TRUE(executor->bind(kA));
    ASSERT_TRUE(exact->bind(kA));
    ASSERT_TRUE(feed(*executor, kA, 200));
    ASSERT_TRUE(feed(*exact, kA, 200));
    const std::uint64_t before = executor->kv_used_bytes();
    ASSERT_TRUE(executor->convert_to_q4_0(kA));
    EXPECT_LT(executor->kv_used_bytes(), before * 6 / 10);
    const auto have = *feed(*executor, kA, 1), want = *feed(*exact, kA, 1);
    double error = 0, power = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
        error += (have[i] - want[i]) * (have[i] - want[i]);
        power += want[i] * want[i];
    }
    EXPECT_GT(error, 0) << "it is in another format";
    EXPECT_LT(error, 0.05 * power);
}

}  // namespace
}  // namespace pantheon::test

// What it costs to go on from a state that was kept in f16, on the trained model that comes with the daemon,
// and that f32 costs nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iostream>

#include "model/executor.h"
#include "model/gguf/gguf_file.h"
#include "model/qwen35moe/weights.h"
#include "model/sampler/sampler.h"
#include "model/state/host_checkpoint.h"
#include "model/tokenizer/tokenizer.h"

namespace pantheon::test {
namespace {

using model::Executor;
using model::ExecutorConfig;
using model::ImageFormat;

constexpr SlotId kA{0}, kB{1};

/// Of another kind than what is trained on: what comes after it is not certain.
constexpr const char* kText =
    "What does kv.n_ctx do? It says how many rows of keys and values a slot may hold, so prompt and answer "
    "together. Tell me a story about a fox who lives near the river. Once upon a time there was a little "
    "fox. "
    "Every morning the fox went down to the water to look for his friend, an old turtle, and every morning "
    "they talked about the weather. What is 17 + 25? The daemon keeps the state of a conversation, and when "
    "the next message comes it goes on from there instead of reading everything once more. How do I see what "
    "is going on? Ask for the status; it shows the model, the slots, the queue and how many tokens there "
    "were.";

struct Trained {
    std::shared_ptr<const model::GgufFile> file;
    std::shared_ptr<const model::Weights> weights;
    std::vector<TokenId> tokens;
};

const Trained& trained() {
    static const Trained loaded = [] {
        Trained made;
        made.file = *model::GgufFile::open(PANTHEON_SOURCE_DIR "/model/embedded/pantheon-tiny.gguf");
        made.weights = *model::Weights::load(made.file);
        const auto tokenizer = *model::Tokenizer::load(made.file->metadata(), made.weights->n_vocab());
        made.tokens = tokenizer->encode(kText, /*special=*/false);
        return made;
    }();
    return loaded;
}

struct Setting {
    model::Backend backend;
    model::KvFormat kv;
    double mean_kl, worst_kl;  // bounds in nats; measured: a third of these, or less
};

std::unique_ptr<Executor> make(const Setting& setting) {
    ExecutorConfig config;
    config.backend = setting.backend;
    config.n_ctx = 1024;
    config.n_slots = 2;
    config.n_threads = 2;
    config.kv.format = setting.kv;
    auto executor = Executor::create(trained().weights, config);
    EXPECT_TRUE(executor);
    return std::move(*executor);
}

using Rows = std::vector<std::vector<float>>;

/// Feeds tokens [length, end); the logits after each.
Rows feed(Executor& executor, SlotId slot, std::size_t end) {
    const auto at = executor.length(slot);
    const model::StepRun run{
        slot,
        at,
        {trained().tokens.begin() + at, trained().tokens.begin() + static_cast<std::ptrdiff_t>(end)},
        model::WantLogits::all};
    const auto logits = executor.step({&run, 1});
    Rows rows;
    EXPECT_TRUE(logits);
    for (std::int64_t i = 0; logits && i < logits->n_rows; ++i)
        rows.emplace_back(logits->row(i).begin(), logits->row(i).end());
    return rows;
}

double kl(const std::vector<float>& exact, const std::vector<float>& other) {
    const double norm_exact = model::log_sum_exp(exact), norm_other = model::log_sum_exp(other);
    double sum = 0;
    for (std::size_t i = 0; i < exact.size(); ++i) {
        const double log_p = exact[i] - norm_exact;
        sum += std::exp(log_p) * (log_p - (other[i] - norm_other));
    }
    return sum;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

std::ptrdiff_t best(const std::vector<float>& row) {
    return std::max_element(row.begin(), row.end()) - row.begin();
}

class ImageFormatTest : public testing::TestWithParam<Setting> {
  protected:
    static Rows exact_rows(model::KvFormat kv) {
        const auto executor = make({model::Backend::ref, kv, 0, 0});
        EXPECT_TRUE(executor->bind(kA));
        return feed(*executor, kA, trained().tokens.size());
    }
};

TEST_P(ImageFormatTest, AReplyFromAnF32StateIsTheSameAndFromAnF16OneNearlyTheSame) {
    const std::size_t n = trained().tokens.size();
    ASSERT_GT(n, 120U);
    const Rows exact = exact_rows(GetParam().kv);
    const auto executor = make(GetParam());
    ASSERT_TRUE(executor->bind(kA));
    const Rows want = feed(*executor, kA, n);
    executor->release(kA);
    double total = 0, worst = 0, want_from_exact = 0, rounded_from_exact = 0;
    int n_rows = 0, n_same_best = 0, n_same_bits = 0;
    for (const std::size_t at : {1, 17, 64, 100}) {
        SCOPED_TRACE(at);
        ASSERT_TRUE(executor->bind(kA));
        (void)feed(*executor, kA, at);
        const auto as_it_is = *executor->snapshot(kA), rounded = *executor->snapshot(kA, ImageFormat::f16);
        // The sequence that was kept goes on exactly, whichever way it was kept.
        const Rows own = feed(*executor, kA, n);
        ASSERT_TRUE(executor->restore(kB, *as_it_is));
        const Rows from_f32 = feed(*executor, kB, n);
        executor->release(kB);
        ASSERT_TRUE(executor->restore(kB, *rounded));
        const Rows from_f16 = feed(*executor, kB, n);
        executor->release(kA);
        executor->release(kB);
        for (std::size_t i = 0; i < n - at; ++i) {
            const auto& row = want[at + i];
            ASSERT_TRUE(same_bits(own[i], row));
            ASSERT_TRUE(same_bits(from_f32[i], row));
            const double divergence = kl(row, from_f16[i]);
            total += divergence;
            worst = std::max(worst, divergence);
            want_from_exact += kl(exact[at + i], row);
            rounded_from_exact += kl(exact[at + i], from_f16[i]);
            ++n_rows;
            n_same_best += best(row) == best(from_f16[i]) ? 1 : 0;
            n_same_bits += same_bits(row, from_f16[i]) ? 1 : 0;
        }
    }
    std::cout << "KL(f32 state, f16 state) mean " << total / n_rows << ", worst " << worst
              << "; KL(exact, f32 state) mean " << want_from_exact / n_rows << ", KL(exact, f16 state) mean "
              << rounded_from_exact / n_rows << "; same best token " << n_same_best << " of " << n_rows
              << "\n";
    EXPECT_LT(n_same_bits, n_rows / 2) << "it is another reply, and the documentation says so";
    EXPECT_LT(total / n_rows, GetParam().mean_kl);
    EXPECT_LT(worst, GetParam().worst_kl);
    EXPECT_GE(n_same_best, n_rows * 98 / 100);
    // What quantised activations cost hides it: from the exact logits it is not farther away than before.
    if (GetParam().backend == model::Backend::cpu) {
        EXPECT_LT(rounded_from_exact, 1.1 * want_from_exact);
    }
}

TEST_P(ImageFormatTest, SizesAreThoseOfWhatIsHeldAndOfWhatIsWritten) {
    model::KvSettings kv;
    kv.format = GetParam().kv;
    const auto executor = make(GetParam());
    ASSERT_TRUE(executor->bind(kA));
    (void)feed(*executor, kA, 100);
    for (const ImageFormat format : {ImageFormat::f32, ImageFormat::f16}) {
        const auto sizes = model::checkpoint_sizes(*trained().weights, kv, format);
        const auto kept = *executor->snapshot(kA, format);
        const auto& host = dynamic_cast<const model::HostCheckpoint&>(*kept);
        const std::uint64_t held = host.half_image
                                       ? 2 * (host.half_image->conv.size() + host.half_image->gdn.size())
                                       : 4 * (host.image->conv.size() + host.image->gdn.size());
        EXPECT_EQ(sizes.image_bytes, held);
        std::uint64_t written = 0;
        const auto codec = model::checkpoint_codec(*trained().weights, kv, format);
        ASSERT_TRUE(codec->encode(*kept, [&](std::span<const std::byte> bytes) {
            written += bytes.size();
            return Status();
        }));
        EXPECT_EQ(written, codec->encoded_bytes(100));
    }
    const auto f32 = model::checkpoint_sizes(*trained().weights, kv);
    const auto f16 = model::checkpoint_sizes(*trained().weights, kv, ImageFormat::f16);
    EXPECT_EQ(f16.image_bytes * 2, f32.image_bytes);
    EXPECT_EQ(f16.image_bytes + f16.parked_extra_bytes, f32.image_bytes) << "a parked sequence stays in f32";
    EXPECT_EQ(f32.parked_extra_bytes, 0U);
    EXPECT_EQ(f16.kv_bytes(100), f32.kv_bytes(100)) << "KV stays as it is";
}

// The rounding alone, on ref; on cpu it makes quantised activations fall on the other side here and there.
INSTANTIATE_TEST_SUITE_P(Kv, ImageFormatTest,
                         testing::Values(Setting{model::Backend::ref, model::KvFormat::f16, 5e-8, 1e-5},
                                         Setting{model::Backend::cpu, model::KvFormat::f16, 4e-4, 2e-2},
                                         Setting{model::Backend::cpu, model::KvFormat::q4_0, 4e-4, 2e-2}),
                         [](const auto& tested) {
                             return std::string(tested.param.backend == model::Backend::ref ? "ref" : "cpu") +
                                    (tested.param.kv == model::KvFormat::f16 ? "_f16" : "_q4_0");
                         });

}  // namespace
}  // namespace pantheon::test

// Two thousand damaged files: each opens as something sane or is refused with a typed error, in bounded
// memory.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>
#include <functional>

#include "model/gguf/gguf_file.h"
#include "model/qwen35moe/weights.h"
#include "runtime/base/log.h"
#include "tests/fuzz/gguf_check.h"
#include "tests/fuzz/gguf_mutator.h"
#include "tests/model/gguf/open_bytes.h"
#include "tests/support/temp_dir.h"

namespace pantheon::model {
namespace {

constexpr std::uint64_t kWholeMutations = 1600;
constexpr std::uint64_t kSplitMutations = 400;
constexpr long kMaxGrowthKiB = 512 * 1024;

/// What is done with every file that opens. A stage says what went wrong, or nothing; it may refuse the file
/// with a typed error of its own, which is nothing wrong.
struct Stage {
    const char* name;
    std::function<std::string(const std::shared_ptr<const GgufFile>&)> problem;
};

std::string problem_with_weights(const std::shared_ptr<const GgufFile>& file) {
    set_log_level(LogLevel::error);  // not a line for each of a thousand models
    const auto weights = Weights::load(file);
    if (!weights) {
        const Code code = weights.error().code();
        const bool is_typed =
            code == Code::data_loss || code == Code::invalid_argument || code == Code::unimplemented;
        return is_typed ? "" : "unexpected code: " + weights.error().to_string();
    }
    if ((*weights)->weight_bytes() > file->file_bytes()) return "more weights than the file has bytes";
    const auto n_layer = static_cast<std::size_t>((*weights)->n_layer());
    if (n_layer == 0 || n_layer > file->tensors().size()) return "layers without tensors";
    return {};
}

const std::vector<Stage>& stages() {
    static const std::vector<Stage> kStages = {
        {"views",
         [](const std::shared_ptr<const GgufFile>& file) {
             return fuzz::problem_with_gguf(fuzz::OpenedGguf(file), file->path());
         }},
        {"weights", problem_with_weights},
    };
    return kStages;
}

long peak_kib() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

struct Tally {
    int n_opened = 0, n_refused = 0;

    void check(const fuzz::OpenedGguf& opened, const std::string& path) {
        if (!opened) {
            ++n_refused;
            EXPECT_EQ(fuzz::problem_with_gguf(opened, path), "");
            return;
        }
        ++n_opened;
        for (const Stage& stage : stages()) EXPECT_EQ(stage.problem(*opened), "") << stage.name;
    }
};

TEST(GgufMutationTest, SeedsAreValid) {
    for (const fuzz::GgufSeed& seed : fuzz::gguf_seeds()) {
        const auto opened = test::open_bytes(seed.bytes);
        EXPECT_TRUE(opened) << seed.name << ": " << opened.error().to_string();
        EXPECT_GT(seed.numbers.size(), 50u);
    }
}

TEST(GgufMutationTest, DamagedFilesAreRefusedOrSane) {
    const std::vector<fuzz::GgufSeed> seeds = fuzz::gguf_seeds();
    const long before = peak_kib();
    Tally tally;
    for (std::uint64_t number = 0; number < kWholeMutations; ++number) {
        const fuzz::GgufSeed& seed = seeds[number % seeds.size()];
        SCOPED_TRACE(testing::Message() << seed.name << " mutation " << number);
        tally.check(test::open_bytes(fuzz::mutated_gguf(seed, number)), "/proc/self/fd/");
    }
    EXPECT_LT(peak_kib() - before, kMaxGrowthKiB);
    EXPECT_GT(tally.n_opened, 100) << "most damage to weights is not damage to the container";
    EXPECT_GT(tally.n_refused, 500);
}

TEST(GgufMutationTest, DamagedSplitSetsAreRefusedOrSane) {
    const std::vector<fuzz::GgufSeed> seeds = fuzz::gguf_split_seeds();
    const test::TempDir dir;
    auto put = [&](const fuzz::GgufSeed& seed, const std::string& bytes) {
        std::ofstream(dir.file(seed.name), std::ios::binary) << bytes;
    };
    for (const fuzz::GgufSeed& seed : seeds) put(seed, seed.bytes);
    const long before = peak_kib();
    Tally tally;
    for (std::uint64_t number = 0; number < kSplitMutations; ++number) {
        const fuzz::GgufSeed& damaged = seeds[number % 2];
        SCOPED_TRACE(testing::Message() << damaged.name << " mutation " << number);
        put(damaged, fuzz::mutated_gguf(damaged, number));
        const std::string path = dir.file(seeds[number / 2 % 2].name);
        tally.check(GgufFile::open(path), path);
        put(damaged, damaged.bytes);
    }
    EXPECT_LT(peak_kib() - before, kMaxGrowthKiB);
    EXPECT_GT(tally.n_opened, 20);
    EXPECT_GT(tally.n_refused, 100);
}

}  // namespace
}  // namespace pantheon::model

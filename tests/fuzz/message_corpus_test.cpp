// The fuzzer's promises over its corpus and over 10,000 seeded mutations of it, without a fuzzer.
#include <gtest/gtest.h>

#include <random>

#include "tests/fuzz/message_check.h"
#include "tests/fuzz/message_mutator.h"

namespace pantheon::fuzz {
namespace {

TEST(MessageCorpusTest, EverySeedIsARequestOrATypedRefusal) {
    const auto corpus = message_corpus();
    ASSERT_GE(corpus.size(), 28u);
    int n_requests = 0;
    for (const std::string& bytes : corpus) n_requests += check_message(bytes);
    EXPECT_GE(n_requests, 17);
}

TEST(MessageCorpusTest, TenThousandMutatedMessagesGiveAMessageOrATypedRefusal) {
    const auto corpus = message_corpus();
    int n_requests = 0;
    for (std::uint64_t seed = 0; seed < 10'000; ++seed)
        n_requests += check_message(mutated_message(corpus, seed));
    // Were all refused, the mutations would test nothing but the first check.
    EXPECT_GT(n_requests, 100);
    EXPECT_LT(n_requests, 9'000);
}

TEST(MessageCorpusTest, RandomBytesNeverMakeARequest) {
    std::mt19937_64 random(1);
    for (int n = 0; n < 20'000; ++n) {
        std::string bytes(random() % 64, '\0');
        for (char& byte : bytes) byte = static_cast<char>(random());
        EXPECT_FALSE(check_message(bytes));
    }
}

TEST(MessageCorpusTest, EveryPrefixOfEverySeedIsRefused) {
    for (const std::string& bytes : message_corpus())
        for (std::size_t n = 0; n < bytes.size(); ++n)
            EXPECT_FALSE(check_message(std::string_view(bytes).substr(0, n)));
}

}  // namespace
}  // namespace pantheon::fuzz

#include "model/sampler/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "model/sampler/philox.h"
#include "model/sampler/selection.h"

namespace pantheon::model {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Everything off: the draw is from the softmax itself.
SamplingParams plain(std::uint64_t seed = 1) {
    SamplingParams p;
    p.top_k = 0;
    p.top_p = 1.0F;
    p.seed = seed;
    return p;
}

TokenId draw(std::span<const float> logits, const SamplingParams& p, std::uint64_t index = 0,
             std::span<const TokenId> window = {}, std::span<const TokenId> never = {}) {
    return sample({logits}, p, window, index, TokenSet(never), -1).token;
}

std::set<TokenId> outcomes(std::span<const float> logits, const SamplingParams& p,
                           std::span<const TokenId> window = {}, std::span<const TokenId> never = {}) {
    std::set<TokenId> seen;
    for (std::uint64_t i = 0; i < 2000; ++i) seen.insert(draw(logits, p, i, window, never));
    return seen;
}

std::vector<float> random_logits(std::size_t n, std::uint64_t seed, float scale = 4.0F) {
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal(0.0F, scale);
    std::vector<float> logits(n);
    for (float& l : logits) l = normal(random);
    return logits;
}

/// The draw as the header defines it, by sorting everything.
TokenId draw_by_definition(std::span<const float> adjusted, const SamplingParams& p, std::uint64_t index) {
    std::vector<Candidate> all;
    for (std::size_t i = 0; i < adjusted.size(); ++i) all.push_back({adjusted[i], static_cast<TokenId>(i)});
    std::sort(all.begin(), all.end(), comes_before);
    if (p.temperature == 0.0F) return all[0].id;
    const double max = all[0].logit;
    const auto weight = [&](const Candidate& c) { return std::exp((c.logit - max) / p.temperature); };
    if (p.top_k != 0 && static_cast<std::size_t>(p.top_k) < all.size())
        all.resize(static_cast<std::size_t>(p.top_k));
    double total = 0.0;
    for (const Candidate& c : all) total += weight(c);
    double sum = 0.0;
    std::size_t n_kept = 0;
    while (n_kept < all.size()) {
        sum += weight(all[n_kept++]);
        if (p.top_p < 1.0F && sum >= p.top_p * total) break;
    }
    all.resize(n_kept);
    std::erase_if(all, [&](const Candidate& c) { return weight(c) < p.min_p; });
    std::sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
    total = 0.0;
    for (const Candidate& c : all) total += weight(c);
    const double target = uniform_draw(p.seed, index) * total;
    double running = 0.0;
    for (const Candidate& c : all)
        if (target < (running += weight(c))) return c.id;
    return all.back().id;
}

TEST(Sampler, MatchesItsDefinitionForEveryMixOfSettings) {
    for (const std::size_t n : {1U, 7U, 300U, 3000U}) {
        const auto logits = random_logits(n, n);
        for (const float temperature : {0.0F, 0.1F, 1.0F, 3.0F})
            for (const std::int32_t top_k : {0, 1, 2, 20, 600, 100'000})
                for (const float top_p : {0.0F, 0.3F, 0.95F, 0.9999F, 1.0F})
                    for (const float min_p : {0.0F, 0.05F, 1.0F}) {
                        SamplingParams p = plain(n);
                        p.temperature = temperature;
                        p.top_k = top_k;
                        p.top_p = top_p;
                        p.min_p = min_p;
                        for (std::uint64_t i = 0; i < 3; ++i)
                            ASSERT_EQ(draw(logits, p, i), draw_by_definition(logits, p, i))
                                << n << " " << temperature << " " << top_k << " " << top_p << " " << min_p;
                    }
    }
}

// Each field's extreme changes what comes out: accepted is applied.
TEST(Sampler, TemperatureZeroIsGreedyAndHighTemperatureIsNearlyUniform) {
    const std::vector<float> logits{1.0F, 3.0F, 2.0F, 3.0F};
    SamplingParams p = plain();
    p.temperature = 0.0F;
    EXPECT_EQ(outcomes(logits, p), std::set<TokenId>{1});  // the lower id of the two best
    p.temperature = 100.0F;
    EXPECT_EQ(outcomes(logits, p).size(), 4U);
    p.temperature = 1e-30F;
    EXPECT_EQ(outcomes(logits, p), (std::set<TokenId>{1, 3}));
}

TEST(Sampler, TopKKeepsTheHighestAndTheLowerIdOnTies) {
    const std::vector<float> logits{1.0F, 2.0F, 1.0F, 1.0F};
    SamplingParams p = plain();
    p.top_k = 1;
    EXPECT_EQ(outcomes(logits, p), std::set<TokenId>{1});
    p.top_k = 2;
    EXPECT_EQ(outcomes(logits, p), (std::set<TokenId>{0, 1}));
    p.top_k = 0;
    EXPECT_EQ(outcomes(logits, p).size(), 4U);
}

TEST(Sampler, TopPKeepsTheSmallestSetThatHoldsTheShare) {
    const std::vector<float> logits{std::log(0.5F), std::log(0.25F), std::log(0.125F), std::log(0.125F)};
    SamplingParams p = plain();
    p.top_p = 0.0F;
    EXPECT_EQ(outcomes(logits, p), std::set<TokenId>{0});
    p.top_p = 0.49F;
    EXPECT_EQ(outcomes(logits, p), std::set<TokenId>{0});
    p.top_p = 0.7F;
    EXPECT_EQ(outcomes(logits, p), (std::set<TokenId>{0, 1}));
    p.top_p = 0.8F;
    EXPECT_EQ(outcomes(logits, p), (std::set<TokenId>{0, 1, 2}));
    p.top_p = 1.0F;
    EXPECT_EQ(outcomes(logits, p).size(), 4U);
}

TEST(Sampler, MinPDropsWhatIsFarBelowTheBest) {
    const std::vector<float> logits{0.0F, std::log(0.5F), std::log(0.1F)};
    SamplingParams p = plain();
    p.min_p = 0.4F;
    EXPECT_EQ(outcomes(logits, p), (std::set<TokenId>{0, 1}));
    p.min_p = 1.0F;
    EXPECT_EQ(outcomes(logits, p), std::set<TokenId>{0});
}

TEST(Sampler, RepeatPenaltyPushesBothSignsDown) {
    SamplingParams p = plain();
    p.temperature = 0.0F;
    p.repeat_penalty = 4.0F;
    const std::vector<TokenId> window{0};
    EXPECT_EQ(draw(std::vector<float>{3.0F, 1.0F}, p, 0, window), 1);
    EXPECT_EQ(draw(std::vector<float>{-1.0F, -3.0F}, p, 0, window), 1);
    EXPECT_EQ(draw(std::vector<float>{3.0F, 0.5F}, p, 0, window), 0);
    p.repeat_penalty = 0.1F;  // below 1 rewards
    EXPECT_EQ(draw(std::vector<float>{1.0F, 3.0F}, p, 0, window), 0);
}

TEST(Sampler, PresenceCountsOnceAndFrequencyEveryTime) {
    const std::vector<float> logits{3.0F, 1.0F};
    const std::vector<TokenId> window{0, 0, 0};
    SamplingParams p = plain();
    p.temperature = 0.0F;
    p.presence_penalty = 1.5F;
    EXPECT_EQ(draw(logits, p, 0, window), 0);
    p.presence_penalty = 2.5F;
    EXPECT_EQ(draw(logits, p, 0, window), 1);
    p.presence_penalty = 0.0F;
    p.frequency_penalty = 0.5F;
    EXPECT_EQ(draw(logits, p, 0, window), 0);
    p.frequency_penalty = 0.75F;
    EXPECT_EQ(draw(logits, p, 0, window), 1);
    p.frequency_penalty = -100.0F;
    EXPECT_EQ(draw(logits, p, 0, std::vector<TokenId>{1}), 1);
}

TEST(Sampler, PenaltiesSeeTheLast64TokensAndIgnoreForeignIds) {
    const std::vector<float> logits{3.0F, 1.0F};
    SamplingParams p = plain();
    p.temperature = 0.0F;
    p.presence_penalty = 10.0F;
    std::vector<TokenId> window(65, 1);
    window[0] = 0;
    EXPECT_EQ(draw(logits, p, 0, window), 0);  // 0 fell out of the window
    window[1] = 0;
    EXPECT_EQ(draw(logits, p, 0, window), 0);  // both penalised alike
    window.assign(3, -1);
    window.push_back(7);
    EXPECT_EQ(draw(logits, p, 0, window), 0);
}

TEST(Sampler, LogitBiasForcesAndForbidsAndAddsUp) {
    const std::vector<float> logits{3.0F, 1.0F, 2.0F};
    SamplingParams p = plain();
    p.logit_bias = {{1, 100.0F}};
    EXPECT_EQ(outcomes(logits, p), std::set<TokenId>{1});
    p.logit_bias = {{0, -1e30F}, {2, -1e30F}};
    EXPECT_EQ(outcomes(logits, p), std::set<TokenId>{1});
    p.temperature = 0.0F;
    p.logit_bias = {{1, 1.5F}, {1, 1.0F}};
    EXPECT_EQ(draw(logits, p), 1);
}

TEST(Sampler, BiasComesBeforePenalties) {
    SamplingParams p = plain();
    p.temperature = 0.0F;
    p.repeat_penalty = 2.0F;
    p.logit_bias = {{0, 4.0F}};
    // (1 + 4) / 2 = 2.5 < 3; the other order would give 1 / 2 + 4 = 4.5 > 3.
    EXPECT_EQ(draw(std::vector<float>{1.0F, 3.0F}, p, 0, std::vector<TokenId>{0}), 1);
}

TEST(Sampler, ExtremeSettingsStillGiveAToken) {
    const std::vector<float> logits{3.0e38F, -3.0e38F, 0.0F};
    SamplingParams p = plain();
    p.logit_bias = {{0, 3.0e38F}, {1, -3.0e38F}, {1, -3.0e38F}};
    p.repeat_penalty = 100.0F;
    p.frequency_penalty = -100.0F;
    p.temperature = std::numeric_limits<float>::denorm_min();
    const std::vector<TokenId> window{0, 1, 1};
    EXPECT_EQ(outcomes(logits, p, window), std::set<TokenId>{0});
    p.logit_bias = {{0, -3.0e38F}, {1, -3.0e38F}, {2, -3.0e38F}};
    EXPECT_THAT(draw(logits, p, 0, window), testing::AllOf(testing::Ge(0), testing::Le(2)));
}

TEST(Sampler, UnusedIdsNeverComeOutWhateverTheBias) {
    const std::vector<float> logits{0.0F, 50.0F, 1.0F};
    const std::vector<TokenId> never{1};
    SamplingParams p = plain();
    p.logit_bias = {{1, 3.0e38F}};
    EXPECT_EQ(outcomes(logits, p, {}, never), (std::set<TokenId>{0, 2}));
    p.temperature = 0.0F;
    EXPECT_EQ(draw(logits, p, 0, {}, never), 2);
    p.temperature = 1.0F;
    p.top_k = 3;
    p.top_p = 0.99F;
    EXPECT_EQ(outcomes(logits, p, {}, never), (std::set<TokenId>{0, 2}));
    EXPECT_EQ(draw(logits, p, 0, {}, std::vector<TokenId>{0, 1, 2, 9, -1}), -1);
}

TEST(Sampler, ReportsNonFiniteLogitsInsteadOfAToken) {
    for (const float bad : {kNan, kInf, -kInf})
        for (const float temperature : {0.0F, 1.0F}) {
            SamplingParams p = plain();
            p.temperature = temperature;
            const std::vector<float> logits{0.0F, 1.0F, bad};
            const SampleResult r = sample({logits}, p, {}, 0, {}, 3);
            EXPECT_FALSE(r.is_finite);
            EXPECT_EQ(r.token, -1);
            EXPECT_TRUE(std::isnan(raw_logprob(logits, 0)));
            EXPECT_TRUE(top_logprobs({logits}, 2).empty());
        }
}

TEST(Sampler, DrawsFollowTheSoftmax) {
    const std::vector<float> logits{0.0F, 1.0F, 2.0F, -1.0F, 0.5F};
    constexpr int kDraws = 50'000;
    std::vector<int> counts(logits.size());
    const SamplingParams p = plain(12345);
    for (int i = 0; i < kDraws; ++i)
        ++counts[static_cast<std::size_t>(draw(logits, p, static_cast<std::uint64_t>(i)))];
    double chi_square = 0.0;
    for (std::size_t i = 0; i < logits.size(); ++i) {
        const double expected = kDraws * std::exp(raw_logprob(logits, static_cast<TokenId>(i)));
        chi_square += (counts[i] - expected) * (counts[i] - expected) / expected;
    }
    EXPECT_LT(chi_square, 18.47);  // 4 degrees of freedom, p = 0.001
}

TEST(Sampler, ADrawDependsOnSeedAndIndexAlone) {
    const auto logits = random_logits(500, 3, 1.0F);
    std::vector<TokenId> forward, backward;
    for (std::uint64_t i = 0; i < 50; ++i) forward.push_back(draw(logits, plain(9), i));
    for (std::uint64_t i = 50; i-- > 0;) backward.push_back(draw(logits, plain(9), i));
    std::reverse(backward.begin(), backward.end());
    EXPECT_EQ(forward, backward);
    std::vector<TokenId> other;
    for (std::uint64_t i = 0; i < 50; ++i) other.push_back(draw(logits, plain(10), i));
    EXPECT_NE(forward, other);
}

TEST(Sampler, LeavesTheLogitsAlone) {
    auto logits = random_logits(100, 1);
    const auto before = logits;
    SamplingParams p = plain();
    p.logit_bias = {{3, 5.0F}};
    p.repeat_penalty = 2.0F;
    (void)sample({logits}, p, std::vector<TokenId>{1, 2}, 0, TokenSet(std::vector<TokenId>{7}), 5);
    EXPECT_EQ(logits, before);
}

TEST(Logprobs, AreThoseOfTheRawLogits) {
    const std::vector<float> logits{1.0F, 2.0F, 2.0F, 0.0F};
    SamplingParams p = plain();
    p.temperature = 0.0F;
    p.logit_bias = {{3, 50.0F}};
    const SampleResult r = sample({logits}, p, {}, 0, {}, 3);
    const double norm = std::log(std::exp(1.0) + 2 * std::exp(2.0) + 1.0);
    EXPECT_EQ(r.token, 3);
    EXPECT_NEAR(r.logprob, -norm, 1e-6);
    ASSERT_EQ(r.top.size(), 3U);
    EXPECT_EQ(r.top[0].token, 1);  // the lower id of the two best
    EXPECT_EQ(r.top[1].token, 2);
    EXPECT_EQ(r.top[2].token, 0);
    EXPECT_NEAR(r.top[0].logprob, 2.0 - norm, 1e-6);
    EXPECT_TRUE(sample({logits}, p, {}, 0, {}, 0).top.empty());
    EXPECT_NEAR(sample({logits}, p, {}, 0, {}, 0).logprob, -norm, 1e-6);
    EXPECT_EQ(top_logprobs({logits}, 20).size(), 4U);
    EXPECT_TRUE(std::isnan(raw_logprob(logits, 4)));
    EXPECT_NEAR(raw_logprob(std::vector<float>{1e4F, 1e4F - 1.0F}, 1), -1.3132616875, 1e-9);
}

TEST(Validate, NamesTheFieldThatIsOutOfRange) {
    struct Case {
        const char* message;
        void (*change)(SamplingParams&);
    };
    const Case kCases[] = {
        {"temperature: -1 is not in 0 … 100", [](SamplingParams& p) { p.temperature = -1.0F; }},
        {"temperature: nan is not in 0 … 100", [](SamplingParams& p) { p.temperature = kNan; }},
        {"temperature: inf is not in 0 … 100", [](SamplingParams& p) { p.temperature = kInf; }},
        {"top_k: -1 is less than 0", [](SamplingParams& p) { p.top_k = -1; }},
        {"top_p: 1.5 is not in 0 … 1", [](SamplingParams& p) { p.top_p = 1.5F; }},
        {"min_p: -0.5 is not in 0 … 1", [](SamplingParams& p) { p.min_p = -0.5F; }},
        {"repeat_penalty: 0 is not above 0", [](SamplingParams& p) { p.repeat_penalty = 0.0F; }},
        {"presence_penalty: -101 is not in -100 … 100",
         [](SamplingParams& p) { p.presence_penalty = -101.0F; }},
        {"frequency_penalty: inf is not in -100 … 100",
         [](SamplingParams& p) { p.frequency_penalty = kInf; }},
        {"logit_bias[1]: token 10 is not in the vocabulary of 10",
         [](SamplingParams& p) {
             p.logit_bias = {{9, 1.0F}, {10, 1.0F}};
         }},
        {"logit_bias[0]: token -1 is not in the vocabulary of 10",
         [](SamplingParams& p) {
             p.logit_bias = {{-1, 1.0F}};
         }},
        {"logit_bias[0]: -inf is not finite",
         [](SamplingParams& p) {
             p.logit_bias = {{0, -kInf}};
         }},
        {"logit_bias: 1025 entries, at most 1024",
         [](SamplingParams& p) {
             p.logit_bias.assign(1025, {0, 1.0F});
         }},
    };
    for (const Case& c : kCases) {
        SamplingParams p;
        c.change(p);
        const Status s = validate(p, 10);
        ASSERT_FALSE(s) << c.message;
        EXPECT_EQ(s.error().code(), Code::invalid_argument);
        EXPECT_EQ(s.error().message(), c.message);
    }
    EXPECT_TRUE(validate(SamplingParams{}, 10));
}

TEST(Philox, MatchesThePublishedVectors) {
    using Words = std::array<std::uint32_t, 4>;
    EXPECT_EQ(philox4x32_10({0, 0, 0, 0}, {0, 0}), (Words{0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8}));
    EXPECT_EQ(philox4x32_10({~0U, ~0U, ~0U, ~0U}, {~0U, ~0U}),
              (Words{0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD}));
    EXPECT_EQ(philox4x32_10({0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344}, {0xA4093822, 0x299F31D0}),
              (Words{0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1}));
}

TEST(UniformDraw, IsSpreadOverTheUnitIntervalForSeedsAndIndices) {
    for (const bool by_seed : {false, true}) {
        std::array<int, 20> bins{};
        double sum = 0.0;
        for (std::uint64_t i = 0; i < 20'000; ++i) {
            const double u = by_seed ? uniform_draw(i, 0) : uniform_draw(42, i);
            ASSERT_GE(u, 0.0);
            ASSERT_LT(u, 1.0);
            ++bins[static_cast<std::size_t>(u * 20)];
            sum += u;
        }
        double chi_square = 0.0;
        for (const int n : bins) chi_square += (n - 1000.0) * (n - 1000.0) / 1000.0;
        EXPECT_LT(chi_square, 43.82);  // 19 degrees of freedom, p = 0.001
        EXPECT_NEAR(sum / 20'000, 0.5, 0.01);
    }
}

/// As the step gives them.
std::vector<float> tile_maxima(std::span<const float> logits) {
    kernels::ThreadTeam team(1);
    kernels::Exec exec(team);
    const auto n = static_cast<std::int64_t>(logits.size());
    std::vector<float> maxima(static_cast<std::size_t>(kernels::n_logit_tiles(n)));
    kernels::tile_maxima_ref(exec, logits.data(), 1, n, maxima.data());
    return maxima;
}

TEST(Selection, ChangedEntriesStandInPlaceOfTheRows) {
    std::mt19937 random(3);
    for (int round = 0; round < 200; ++round) {
        const std::size_t n = 1 + random() % 1500;
        auto logits = random_logits(n, static_cast<std::uint64_t>(round));
        const auto maxima = tile_maxima(logits);
        std::vector<Candidate> changed;
        auto patched = logits;
        for (std::size_t i = random() % 40; i < n; i += 1 + random() % 200) {
            // Lowered, raised over all others, or masked: often the greatest of its tile.
            const float logit = random() % 3 == 0 ? -kInf : static_cast<float>(random() % 40) - 20.0F;
            changed.push_back({logit, static_cast<TokenId>(i)});
            patched[i] = logit;
        }
        for (const std::size_t k : {std::size_t{1}, std::size_t{20}, std::size_t{512}, n}) {
            auto want = select_top({patched}, {}, {}, k), got = select_top({logits, maxima}, changed, {}, k);
            std::sort(want.begin(), want.end(), comes_before);
            std::sort(got.begin(), got.end(), comes_before);
            ASSERT_EQ(got.size(), want.size());
            for (std::size_t i = 0; i < got.size(); ++i)
                ASSERT_EQ(got[i].id, want[i].id) << "round " << round;
        }
    }
}

TEST(Sampler, GivesTheSameWithAndWithoutMaxima) {
    const auto logits = random_logits(5000, 11);
    const auto maxima = tile_maxima(logits);
    const std::vector<TokenId> window = {3, 4000, 3, 17, -1, 5000}, never = {4999, 12, 700};
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
        SamplingParams p;
        p.seed = seed;
        p.temperature = seed % 5 == 0 ? 0.0F : 1.5F;
        p.top_k = static_cast<std::int32_t>(seed % 4 * 20);
        p.repeat_penalty = seed % 2 == 0 ? 1.0F : 1.3F;
        p.logit_bias = {{static_cast<TokenId>(seed * 90), 9.0F}, {4999, 50.0F}, {17, -3.0F}, {17, 8.0F}};
        const SampleResult a = sample({logits}, p, window, seed, TokenSet(never), 5);
        const SampleResult b = sample({logits, maxima}, p, window, seed, TokenSet(never), 5);
        EXPECT_EQ(a.token, b.token);
        EXPECT_EQ(a.logprob, b.logprob);
        for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(a.top[i].token, b.top[i].token);
    }
    auto bad = logits;
    bad[4321] = kNan;
    EXPECT_FALSE(sample({bad, tile_maxima(bad)}, plain(), {}, 0, {}, -1).is_finite);
}

TEST(Selection, TakesTheBestForEveryK) {
    auto logits = random_logits(2000, 8);
    for (std::size_t i = 0; i < logits.size(); i += 3) logits[i] = 1.0F;  // many ties
    logits[5] = -kInf;
    std::vector<Candidate> sorted;
    for (std::size_t i = 0; i < logits.size(); ++i)
        if (i != 5) sorted.push_back({logits[i], static_cast<TokenId>(i)});
    std::sort(sorted.begin(), sorted.end(), comes_before);
    for (const std::size_t k : {0U, 1U, 2U, 100U, 512U, 513U, 1500U, 1999U, 2000U, 5000U}) {
        for (const bool has_maxima : {false, true}) {
            const std::vector<float> maxima = has_maxima ? tile_maxima(logits) : std::vector<float>();
            std::vector<Candidate> got = select_top({logits, maxima}, {}, {}, k);
            std::sort(got.begin(), got.end(), comes_before);
            ASSERT_EQ(got.size(), std::min<std::size_t>(k, 1999)) << k;
            for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i].id, sorted[i].id);
        }
    }
}

}  // namespace
}  // namespace pantheon::model

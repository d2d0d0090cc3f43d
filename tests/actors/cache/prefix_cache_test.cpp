// The prefix cache beside a model that keeps plain lists: what is found, what is isolated, what goes, and
// that the budget holds after every single operation.
#include "actors/cache/prefix_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace pantheon::actors {
namespace {

using Tokens = std::vector<TokenId>;
const CacheSpace kAlice = "uid:1", kBob = "uid:2";
constexpr model::CheckpointSizes kSizes{1000, 100, 16};

Tokens tokens_of(const std::string& text) {
    return {text.begin(), text.end()};
}

/// KV blocks of a sequence that shares with none other than its own prefixes.
std::vector<std::uint64_t> blocks_of(const Tokens& tokens) {
    std::vector<std::uint64_t> blocks;
    std::uint64_t hash = 7;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        hash = (hash ^ static_cast<std::uint64_t>(tokens[i])) * 0x100000001B3ULL + 1;
        if (i % 16 == 15 || i + 1 == tokens.size()) blocks.push_back(hash);
    }
    return blocks;
}

CheckpointId keep(PrefixCache& cache, const CacheSpace& space, const Tokens& tokens, CheckpointId base = {}) {
    const auto id = cache.add(space, tokens, base);
    if (!id) return {};
    EXPECT_TRUE(cache.confirm(*id, blocks_of(tokens)));
    return *id;
}

TEST(PrefixCacheTest, AStateCountsTheF16RowsOfItsOwnLength) {
    model::CheckpointSizes sizes = kSizes;
    sizes.half_block_bytes = 300;
    sizes.sink = 4;
    sizes.window = 32;
    PrefixCache cache(sizes, 1 << 20);
    const struct {
        std::size_t n_tokens;
        std::uint64_t want;
    } kCases[] = {{1, 1000 + 400}, {32, 1000 + 800}, {160, 1000 + 10 * 100 + 3 * 300}};
    std::uint64_t before = 0;
    for (const auto& c : kCases) {
        SCOPED_TRACE(c.n_tokens);
        const CacheSpace space = std::to_string(c.n_tokens);
        const Tokens tokens(c.n_tokens, static_cast<TokenId>(c.n_tokens));
        EXPECT_FALSE(PrefixCache(sizes, c.want - 1).add(space, tokens, {}));
        const CheckpointId id = keep(cache, space, tokens);
        const std::uint64_t tree = 1000;  // at most, for its one node
        EXPECT_GE(cache.bytes() - before, c.want);
        EXPECT_LE(cache.bytes() - before, c.want + c.n_tokens * sizeof(TokenId) + tree);
        before = cache.bytes();
        EXPECT_NE(id, CheckpointId());
    }
    cache.set_ceiling(0);
    EXPECT_EQ(cache.bytes(), 0U);
}

TEST(PrefixCacheTest, AParkedSequenceTakesMoreWhereCheckpointsAreRounded) {
    model::CheckpointSizes sizes = kSizes;
    sizes.parked_extra_bytes = 1000;
    PrefixCache cache(sizes, 3000);
    using Arrival = PrefixCache::Arrival;
    ASSERT_TRUE(cache.reserve(20, Arrival::parked));
    EXPECT_EQ(cache.bytes(), 1000U + 1000U + 2 * 100U);
    EXPECT_FALSE(cache.reserve(1, Arrival::parked));
    EXPECT_FALSE(cache.reserve(1));
    cache.unreserve(20, Arrival::parked);
    EXPECT_EQ(cache.bytes(), 0U);
    ASSERT_TRUE(cache.reserve(20));
    EXPECT_EQ(cache.bytes(), 1000U + 2 * 100U);
    EXPECT_TRUE(cache.reserve(20));
    cache.unreserve(20);
    cache.unreserve(20);
    EXPECT_EQ(cache.bytes(), 0U);
}

TEST(PrefixCacheTest, FindsTheDeepestCheckpointThatLeavesATokenToEvaluate) {
    PrefixCache cache(kSizes, 1 << 20);
    const CheckpointId ab = keep(cache, kAlice, tokens_of("ab"));
    const CheckpointId abcd = keep(cache, kAlice, tokens_of("abcd"));
    const struct {
        const char* prompt;
        CheckpointId want;
        std::int64_t length, n_shared;
    } kCases[] = {
        {"abcdef", abcd, 4, 4}, {"abcd", ab, 2, 4}, {"abcx", ab, 2, 3}, {"ab", {}, 0, 2},
        {"ax", {}, 0, 1},       {"xyz", {}, 0, 0},  {"a", {}, 0, 1},
    };
    for (const auto& c : kCases) {
        SCOPED_TRACE(c.prompt);
        const auto found = cache.find(kAlice, tokens_of(c.prompt));
        EXPECT_EQ(found.checkpoint, c.want);
        EXPECT_EQ(found.length, c.length);
        EXPECT_EQ(found.n_shared, c.n_shared);
    }
    EXPECT_EQ(cache.n_hits(), 3U);
    EXPECT_EQ(cache.n_misses(), 4U);
}

TEST(PrefixCacheTest, AClientFindsItsOwnAndSharedStatesAndNoOtherClients) {
    PrefixCache cache(kSizes, 1 << 20);
    keep(cache, kAlice, tokens_of("secret"));
    const CheckpointId shared = keep(cache, kSharedSpace, tokens_of("sec"));
    EXPECT_EQ(cache.find(kAlice, tokens_of("secret!")).length, 6);
    const auto found = cache.find(kBob, tokens_of("secret!"));
    EXPECT_EQ(found.checkpoint, shared);
    EXPECT_EQ(found.n_shared, 3) << "not even how much agrees is told";
    EXPECT_EQ(cache.find(kSharedSpace, tokens_of("secret!")).length, 3);
}

TEST(PrefixCacheTest, SharedBlocksCountOnce) {
    PrefixCache cache(kSizes, 1 << 20);
    const CheckpointId first = keep(cache, kAlice, Tokens(32, 'a'));
    const std::uint64_t one = cache.bytes();
    keep(cache, kAlice, Tokens(33, 'a'), first);
    const std::uint64_t both = cache.bytes();
    EXPECT_LT(both - one, 1000U + 2 * 100U + 1000U);
    EXPECT_GE(both - one, 1000U + 100U);
}

TEST(PrefixCacheTest, WhatIsTooBigForTheBudgetIsNotKeptAndDropsNothing) {
    PrefixCache cache(kSizes, 3000);
    const CheckpointId small = keep(cache, kAlice, tokens_of("small"));
    ASSERT_NE(small, CheckpointId());
    EXPECT_FALSE(cache.add(kAlice, Tokens(500, 'b'), {}));
    EXPECT_TRUE(cache.contains(small));
    EXPECT_TRUE(cache.take_dropped().empty());
}

TEST(PrefixCacheTest, TheLeastValuePerByteGoesFirstAndUseKeeps) {
    PrefixCache cache({1000, 0, 16}, 4000);
    const CheckpointId used = keep(cache, kAlice, Tokens(10, 'u'));
    const CheckpointId unused = keep(cache, kAlice, Tokens(10, 'v'));
    Tokens prompt(11, 'u');
    for (int i = 0; i < 8; ++i) {
        cache.find(kAlice, prompt);
        keep(cache, kAlice, Tokens(static_cast<std::size_t>(12 + i), static_cast<TokenId>('A' + i)));
    }
    EXPECT_TRUE(cache.contains(used));
    EXPECT_FALSE(cache.contains(unused));
}

TEST(PrefixCacheTest, AStateOfLittleWorthDoesNotPushOutOneOfMuchButAgesIt) {
    PrefixCache cache({1000, 0, 16}, 2300);
    const CheckpointId valuable = keep(cache, kAlice, Tokens(100, 'v'));
    EXPECT_FALSE(cache.add(kAlice, tokens_of("ab"), {}) && cache.add(kAlice, tokens_of("cd"), {}));
    EXPECT_TRUE(cache.contains(valuable));
    for (int i = 0; i < 300 && cache.contains(valuable); ++i) keep(cache, kAlice, {1000 + i, 1, 2, 3});
    EXPECT_FALSE(cache.contains(valuable)) << "unused for ever, it has to go some day";
}

TEST(PrefixCacheTest, AStateInTheMakingIsFoundAndStaysUntilItIsThere) {
    PrefixCache cache(kSizes, 1 << 20);
    const auto pending = cache.add(kAlice, tokens_of("abc"), {});
    ASSERT_TRUE(pending);
    EXPECT_FALSE(cache.add(kAlice, tokens_of("abc"), {})) << "once is enough";
    EXPECT_EQ(cache.find(kAlice, tokens_of("abcd")).checkpoint, *pending);
    cache.give_up(*pending);
    EXPECT_EQ(cache.find(kAlice, tokens_of("abcd")).checkpoint, CheckpointId());
    EXPECT_EQ(cache.bytes(), 0U);
    EXPECT_FALSE(cache.confirm(*pending, {1})) << "the die may drop it";
}

TEST(PrefixCacheTest, ANamedStateStaysUntilItsOwnerDropsIt) {
    PrefixCache cache({1000, 0, 16}, 5000);
    const CheckpointId named = keep(cache, kAlice, tokens_of("named"));
    ASSERT_TRUE(cache.name_session(kAlice, "s", kAlice, named));
    for (int i = 0; i < 50; ++i) keep(cache, kAlice, Tokens(40, 100 + i));
    EXPECT_TRUE(cache.contains(named));
    ASSERT_EQ(cache.sessions(kAlice).size(), 1U);
    EXPECT_EQ(cache.sessions(kAlice)[0].name, "s");
    EXPECT_EQ(cache.sessions(kAlice)[0].n_tokens, 5);
    EXPECT_TRUE(cache.sessions(kBob).empty());
    EXPECT_EQ(cache.drop_session(kBob, "s", kBob).error().code(), Code::not_found);
    ASSERT_TRUE(cache.drop_session(kAlice, "s", kAlice));
    EXPECT_FALSE(cache.contains(named));
    EXPECT_EQ(cache.drop_session(kAlice, "s", kAlice).error().code(), Code::not_found);
}

TEST(PrefixCacheTest, AStateThatWasAskedForPushesOutWhateverMayGo) {
    PrefixCache cache({1000, 0, 16}, 2300);
    keep(cache, kAlice, Tokens(100, 'v'));
    keep(cache, kAlice, {1, 2});
    const auto asked = cache.add(kAlice, Tokens{7, 8}, {}, /*is_asked_for=*/true);
    EXPECT_TRUE(asked);
}

TEST(PrefixCacheTest, ASharedNameBelongsToWhoGaveIt) {
    PrefixCache cache(kSizes, 1 << 20);
    const CheckpointId state = keep(cache, kSharedSpace, tokens_of("system"));
    ASSERT_TRUE(cache.name_session(kSharedSpace, "s", kAlice, state));
    EXPECT_EQ(cache.name_session(kSharedSpace, "s", kBob, state).error().code(), Code::permission_denied);
    EXPECT_EQ(cache.drop_session(kSharedSpace, "s", kBob).error().code(), Code::permission_denied);
    EXPECT_TRUE(cache.drop_session(kSharedSpace, "s", kBob, /*is_admin=*/true));
}

TEST(PrefixCacheTest, NamedStatesTakeHalfOfTheBudgetAtMost) {
    PrefixCache cache({1000, 0, 16}, 6000);
    int n_named = 0;
    for (int i = 0; i < 5; ++i) {
        const CheckpointId state = keep(cache, kAlice, Tokens(20, 'a' + i));
        if (state != CheckpointId() && cache.name_session(kAlice, std::to_string(i), kAlice, state))
            ++n_named;
    }
    EXPECT_EQ(n_named, 3);
}

TEST(PrefixCacheTest, ALowerLimitTakesTheNamesThatAreTooManyForIt) {
    PrefixCache cache(kSizes, 20000);
    for (const TokenId t : {'a', 'b', 'c', 'd'}) {
        const CheckpointId id = keep(cache, kAlice, Tokens(60, t));
        ASSERT_TRUE(cache.name_session(kAlice, std::string(1, static_cast<char>(t)), kAlice, id));
    }
    ASSERT_EQ(cache.find(kAlice, Tokens(61, 'a')).length, 60);  // used last
    cache.set_limit(6000);
    EXPECT_LE(cache.bytes(), 6000U);
    const auto left = cache.sessions(kAlice);
    ASSERT_EQ(left.size(), 2U);
    EXPECT_EQ(left[0].name, "a");
    EXPECT_EQ(left[1].name, "d");
    const CheckpointId other = keep(cache, kAlice, Tokens(60, 'x'));
    EXPECT_TRUE(cache.contains(other)) << "there is room for others again";
    cache.set_limit(0);
    EXPECT_TRUE(cache.sessions(kAlice).empty());
    EXPECT_EQ(cache.bytes(), 0U);
}

TEST(PrefixCacheTest, ANameThatCannotMoveStaysWhereItIs) {
    PrefixCache cache({1000, 100, 16}, 8000);
    const CheckpointId small = keep(cache, kAlice, tokens_of("small"));
    ASSERT_TRUE(cache.name_session(kAlice, "s", kAlice, small));
    const CheckpointId large = keep(cache, kAlice, Tokens(500, 'x'));  // 4200 bytes, more than half
    ASSERT_NE(large, CheckpointId());
    EXPECT_EQ(cache.name_session(kAlice, "s", kAlice, large).error().code(), Code::resource_exhausted);
    ASSERT_TRUE(cache.session(kAlice, "s"));
    EXPECT_EQ(cache.session(kAlice, "s")->checkpoint, small);
    for (int i = 0; i < 50; ++i) keep(cache, kAlice, Tokens(40, 100 + i));
    EXPECT_TRUE(cache.contains(small));
}

/// Random prompts over two letters, three spaces and a small budget.
TEST(PrefixCacheTest, RandomUseAgreesWithPlainListsAndTheBudgetAlwaysHolds) {
    struct Kept {
        CacheSpace space;
        Tokens tokens;
        bool is_confirmed = false;
    };
    const CacheSpace kSpaces[] = {kAlice, kBob, kSharedSpace};
    for (unsigned seed = 1; seed <= 30; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        std::mt19937 random(seed);
        const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
        const std::uint64_t limit = 8000 + 500 * seed;
        PrefixCache cache(kSizes, limit);
        std::map<CheckpointId, Kept> kept;
        std::set<CheckpointId> on_die;
        const auto random_tokens = [&] {
            Tokens tokens(1 + below(40));
            for (TokenId& token : tokens) token = below(6) == 0 ? 'b' : 'a';
            return tokens;
        };
        for (int round = 0; round < 600; ++round) {
            const CacheSpace& space = kSpaces[below(3)];
            const std::size_t action = below(10);
            if (action < 4) {
                const Tokens tokens = random_tokens();
                CheckpointId base;
                for (const auto& [id, k] : kept)
                    if (k.space == space && k.tokens.size() <= tokens.size() &&
                        std::equal(k.tokens.begin(), k.tokens.end(), tokens.begin()))
                        base = id;
                const bool is_there = cache.at(space, tokens) != CheckpointId();
                const auto id = cache.add(space, tokens, base);
                EXPECT_FALSE(is_there && id);
                if (id) kept[*id] = {space, tokens};
            } else if (action < 7) {
                for (auto& [id, k] : kept) {
                    if (k.is_confirmed || !cache.contains(id)) continue;
                    if (below(8) == 0) {
                        cache.give_up(id);
                    } else {
                        ASSERT_TRUE(cache.confirm(id, blocks_of(k.tokens)));
                        k.is_confirmed = true;
                        on_die.insert(id);
                    }
                    break;
                }
            } else if (action < 9) {
                const Tokens prompt = random_tokens();
                std::int64_t length = 0, n_shared = 0;
                for (const auto& [id, k] : kept) {
                    if (!cache.contains(id) || (k.space != space && k.space != kSharedSpace)) continue;
                    const auto n = std::min(prompt.size(), k.tokens.size());
                    const auto same = static_cast<std::size_t>(
                        std::mismatch(prompt.begin(), prompt.begin() + static_cast<std::ptrdiff_t>(n),
                                      k.tokens.begin())
                            .first -
                        prompt.begin());
                    n_shared = std::max(n_shared, static_cast<std::int64_t>(same));
                    if (same == k.tokens.size() && same < prompt.size())
                        length = std::max(length, static_cast<std::int64_t>(same));
                }
                const auto found = cache.find(space, prompt);
                ASSERT_EQ(found.length, length);
                ASSERT_EQ(found.n_shared, n_shared);
                if (length > 0)
                    ASSERT_EQ(static_cast<std::int64_t>(kept.at(found.checkpoint).tokens.size()), length);
            } else if (below(6) == 0 && !kept.empty()) {
                const auto k = std::next(kept.begin(), static_cast<std::ptrdiff_t>(below(kept.size())));
                (void)cache.name_session(space, "n" + std::to_string(below(3)), space, k->first);
            } else {
                (void)cache.drop_session(space, "n" + std::to_string(below(3)), space);
            }
            for (const CheckpointId id : cache.take_dropped()) ASSERT_EQ(on_die.erase(id), 1U);
            std::erase_if(kept, [&](const auto& k) { return !cache.contains(k.first); });
            ASSERT_EQ(cache.size(), kept.size());
            ASSERT_LE(cache.bytes(), limit) << "round " << round;
        }
        for (auto& [id, k] : kept)
            if (!k.is_confirmed) cache.give_up(id);
        cache.set_limit(0);
        for (const CheckpointId id : cache.take_dropped()) on_die.erase(id);
        EXPECT_TRUE(on_die.empty());
        EXPECT_EQ(cache.bytes(), 0U);
        EXPECT_EQ(cache.size(), 0U);
    }
}

// ---- copies on disk
// ---------------------------------------------------------------------------------------------------

std::vector<Tokens> unsaved(PrefixCache& cache) {
    std::vector<Tokens> list;
    for (auto& gone : cache.take_unsaved()) list.push_back(std::move(gone.tokens));
    return list;
}

TEST(PrefixCacheTest, WhatGoesForWantOfRoomAndHasNoCopyIsHandedOut) {
    PrefixCache cache(kSizes, 8000);
    cache.set_saving(true);
    const CheckpointId a = keep(cache, kAlice, Tokens(60, 'a'));
    const CheckpointId b = keep(cache, kAlice, Tokens(60, 'b'));
    cache.set_copy(a, PrefixCache::Copy::saved);
    for (TokenId t = 'c'; cache.contains(a) || cache.contains(b); ++t) {
        ASSERT_LT(t, 'z');
        keep(cache, kAlice, Tokens(100, t));
    }
    const auto gone = unsaved(cache);
    EXPECT_EQ(std::count(gone.begin(), gone.end(), Tokens(60, 'b')), 1);
    EXPECT_EQ(std::count(gone.begin(), gone.end(), Tokens(60, 'a')), 0) << "it has a copy";
    EXPECT_GE(cache.take_dropped().size(), gone.size());
    // What is dropped on purpose or was never there is not to be written.
    const CheckpointId lost = keep(cache, kAlice, Tokens(200, 'x'));
    cache.give_up(lost);
    const CheckpointId named = keep(cache, kAlice, Tokens(200, 'y'));
    ASSERT_TRUE(cache.name_session(kAlice, "talk", kAlice, named));
    ASSERT_TRUE(cache.drop_session(kAlice, "talk", kAlice));
    for (const Tokens& tokens : unsaved(cache)) EXPECT_TRUE(tokens[0] != 'x' && tokens[0] != 'y');
    cache.set_limit(0);
    EXPECT_TRUE(unsaved(cache).empty()) << "without a cache nothing is worth a file";
}

TEST(PrefixCacheTest, AQuarterOfTheBudgetIsMadeReadyToGo) {
    PrefixCache cache(kSizes, 10000);
    cache.set_saving(true);
    std::vector<CheckpointId> kept;
    for (TokenId t = 'a'; !cache.next_to_save(); ++t) {
        kept.push_back(keep(cache, kAlice, Tokens(static_cast<std::size_t>(t - 'a' + 40), t)));
        ASSERT_LE(cache.bytes(), 10000U);
    }
    EXPECT_GT(cache.bytes(), 7500U);
    EXPECT_EQ(*cache.next_to_save(), kept[0]) << "the least worthy first";
    cache.set_copy(kept[0], PrefixCache::Copy::underway);
    EXPECT_NE(cache.next_to_save(), kept[0]) << "once";
    for (int i = 0; cache.next_to_save(); ++i) {
        ASSERT_LT(i, 4);
        cache.set_copy(*cache.next_to_save(), i % 2 ? PrefixCache::Copy::saved : PrefixCache::Copy::refused);
    }
    const auto rest = cache.unsaved();
    ASSERT_FALSE(rest.empty());
    EXPECT_EQ(rest.front(), kept.back()) << "the worthiest first";
    cache.set_saving(false);
    EXPECT_EQ(cache.next_to_save(), std::nullopt);
    EXPECT_TRUE(cache.unsaved().empty());
}

TEST(PrefixCacheTest, APatientCeilingWaitsForCopiesAndLetsNothingIn) {
    PrefixCache cache(kSizes, 1 << 20);
    cache.set_saving(true);
    std::vector<CheckpointId> kept;
    for (TokenId t = 'a'; t < 'e'; ++t) kept.push_back(keep(cache, kAlice, Tokens(64, t)));
    const std::uint64_t before = cache.bytes();
    cache.set_ceiling(before / 2, /*is_patient=*/true);
    EXPECT_EQ(cache.bytes(), before);
    EXPECT_EQ(cache.add(kAlice, Tokens(64, 'x'), {}, true), std::nullopt);
    EXPECT_FALSE(cache.reserve(64));
    int n_saved = 0;
    while (const auto next = cache.next_to_save()) {
        cache.set_copy(*next, PrefixCache::Copy::underway);
        EXPECT_TRUE(cache.contains(*next)) << "it is being written";
        cache.set_copy(*next, n_saved++ % 2 ? PrefixCache::Copy::saved : PrefixCache::Copy::refused);
    }
    EXPECT_LE(cache.bytes(), before / 2);
    EXPECT_GE(n_saved, 2);
    EXPECT_TRUE(unsaved(cache).empty()) << "each has been offered to the disk";
    cache.set_ceiling(0);
    EXPECT_EQ(cache.bytes(), 0U);
}

}  // namespace
}  // namespace pantheon::actors

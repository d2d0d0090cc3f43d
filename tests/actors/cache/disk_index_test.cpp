// Which checkpoints on disk are found and which go: the budget holds after every single operation.
#include "actors/cache/disk_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace pantheon::actors {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Tokens = std::vector<TokenId>;
const CacheSpace kAlice = "uid:1", kBob = "uid:2";

Tokens tokens_of(const std::string& text) {
    return {text.begin(), text.end()};
}

StateOnDisk state(const std::string& text, const CacheSpace& space = kAlice, std::uint64_t bytes = 100) {
    return {space + "/" + text, space, tokens_of(text), bytes, 0};
}

bool put(DiskIndex& disk, const StateOnDisk& what) {
    if (!disk.reserve(what.space, what.tokens, what.bytes)) return false;
    disk.add(what);
    return true;
}

std::vector<std::string> dropped(DiskIndex& disk) {
    std::vector<std::string> files;
    for (const StateOnDisk& gone : disk.take_dropped()) files.push_back(gone.file);
    return files;
}

DiskIndex index(std::uint64_t limit_bytes) {
    DiskIndex disk;
    disk.set_limit(limit_bytes);
    return disk;
}

TEST(DiskIndexTest, FindsTheDeepestThatLeavesATokenToEvaluateOfTheClientOrShared) {
    DiskIndex disk = index(10000);
    EXPECT_TRUE(put(disk, state("ab")));
    EXPECT_TRUE(put(disk, state("abcd")));
    EXPECT_TRUE(put(disk, state("a", kSharedSpace)));
    const struct {
        const char* prompt;
        CacheSpace space;
        std::string want;
        std::int64_t length, n_shared;
    } kCases[] = {
        {"abcdef", kAlice, "uid:1/abcd", 4, 4},     {"abcd", kAlice, "uid:1/ab", 2, 4},
        {"abcx", kAlice, "uid:1/ab", 2, 3},         {"ab", kAlice, "shared/a", 1, 2},
        {"abcdef", kBob, "shared/a", 1, 1},         {"x", kAlice, "", 0, 0},
        {"abcdef", kSharedSpace, "shared/a", 1, 1},
    };
    for (const auto& c : kCases) {
        SCOPED_TRACE(c.prompt + c.space);
        const auto found = disk.look(c.space, tokens_of(c.prompt));
        EXPECT_EQ(found.file, c.want);
        EXPECT_EQ(found.length, c.length);
        EXPECT_EQ(found.n_shared, c.n_shared);
    }
    EXPECT_EQ(disk.at(kAlice, tokens_of("ab")), "uid:1/ab");
    EXPECT_EQ(disk.at(kAlice, tokens_of("abc")), std::nullopt);
    EXPECT_EQ(disk.describe("uid:1/abcd")->tokens, tokens_of("abcd"));
    EXPECT_EQ(disk.describe("none"), std::nullopt);
}

TEST(DiskIndexTest, WhatIsBeingWrittenCountsAndIsNotFoundYet) {
    DiskIndex disk = index(150);
    ASSERT_TRUE(disk.reserve(kAlice, tokens_of("ab"), 100));
    EXPECT_EQ(disk.bytes(), 100U);
    EXPECT_EQ(disk.look(kAlice, tokens_of("abc")).file, "");
    EXPECT_FALSE(disk.reserve(kAlice, tokens_of("ab"), 20)) << "being written";
    EXPECT_FALSE(disk.reserve(kAlice, tokens_of("xy"), 100)) << "no room, and nothing that could go";
    disk.cancel(kAlice, tokens_of("ab"));
    EXPECT_EQ(disk.bytes(), 0U);
    ASSERT_TRUE(put(disk, state("ab")));
    EXPECT_EQ(disk.bytes(), 100U);
    EXPECT_FALSE(disk.reserve(kAlice, tokens_of("ab"), 20)) << "there already";
    EXPECT_THAT(dropped(disk), IsEmpty());
}

TEST(DiskIndexTest, TheLeastValuePerByteGoesFirstAndUseKeeps) {
    DiskIndex disk = index(300);
    ASSERT_TRUE(put(disk, state("aaaaaaa")));
    ASSERT_TRUE(put(disk, state("bb")));
    ASSERT_TRUE(put(disk, state("cccccc")));
    ASSERT_TRUE(put(disk, state("dddddddd")));
    EXPECT_THAT(dropped(disk), ElementsAre("uid:1/bb"));
    // "cc…" is worth less than "aa…", but has been used since the clock went on.
    disk.use("uid:1/cccccc");
    ASSERT_TRUE(put(disk, state("eeeeeeeee")));
    EXPECT_THAT(dropped(disk), ElementsAre("uid:1/aaaaaaa"));
    EXPECT_FALSE(disk.reserve(kAlice, tokens_of("gggggggggggggggg"), 301)) << "larger than all of it";
    EXPECT_EQ(disk.bytes(), 300U);
}

TEST(DiskIndexTest, ANewcomerThatIsWorthLessThanAllIsTurnedAwayUntilItHasComeOften) {
    DiskIndex disk = index(200);
    ASSERT_TRUE(put(disk, state("aaaaaaaaaa")));
    ASSERT_TRUE(put(disk, state("bbbbbbbbbb")));
    int n_refused = 0;
    while (!disk.reserve(kAlice, tokens_of("ccc"), 100)) ++n_refused;
    EXPECT_EQ(n_refused, 3) << "each time the clock goes on by three tokens' worth, and ten are to be passed";
    EXPECT_THAT(dropped(disk), ElementsAre("uid:1/aaaaaaaaaa"));
}

TEST(DiskIndexTest, WhatAnotherModelHasLeftGoesFirstTheOldestFirst) {
    DiskIndex disk = index(400);
    StateOnDisk old{"foreign old", "", {}, 100, 1}, recent{"foreign new", "", {}, 100, 3};
    StateOnDisk own = state("a");
    own.used_ms = 2;
    disk.reset({recent, old, own});
    EXPECT_EQ(disk.bytes(), 300U);
    ASSERT_TRUE(put(disk, state("bb", kAlice, 200)));
    EXPECT_THAT(dropped(disk), ElementsAre("foreign old"));
    ASSERT_TRUE(put(disk, state("cc")));
    EXPECT_THAT(dropped(disk), ElementsAre("foreign new"));
    EXPECT_EQ(disk.look(kAlice, tokens_of("ax")).file, "uid:1/a");
}

TEST(DiskIndexTest, AListingAboveTheBudgetIsCutDownByAge) {
    DiskIndex disk = index(200);
    std::vector<StateOnDisk> listing;
    for (const char* text : {"aaaa", "bbbb", "cccc", "dddd"}) {
        listing.push_back(state(text));
        listing.back().used_ms = text[0] == 'b' ? 100 : text[0];
    }
    listing[1].used_ms = 1000;  // "bbbb" was used last
    disk.reset(listing);
    EXPECT_EQ(disk.bytes(), 200U);
    EXPECT_THAT(dropped(disk), ElementsAre("uid:1/aaaa", "uid:1/cccc"));
    disk.reset({listing[0]});
    EXPECT_EQ(disk.bytes(), 100U);
    EXPECT_EQ(disk.size(), 1U);
}

TEST(DiskIndexTest, ALowerLimitDropsAndNoneFindsNothing) {
    DiskIndex disk = index(300);
    for (const char* text : {"aa", "bbb", "cccc"}) ASSERT_TRUE(put(disk, state(text)));
    disk.set_limit(100);
    EXPECT_THAT(dropped(disk), ElementsAre("uid:1/aa", "uid:1/bbb"));
    disk.set_limit(0);
    EXPECT_THAT(dropped(disk), ElementsAre("uid:1/cccc"));
    EXPECT_FALSE(disk.is_enabled());
    EXPECT_FALSE(disk.reserve(kAlice, tokens_of("a"), 1));
    EXPECT_EQ(disk.look(kAlice, tokens_of("ccccc")).file, "");
}

TEST(DiskIndexTest, TheNumberOfFilesIsBoundedToo) {
    DiskIndex disk = index(std::uint64_t{1} << 40);
    for (TokenId i = 0; i < 1100; ++i) put(disk, {"f" + std::to_string(i), kAlice, {i, i, i}, 10, 0});
    EXPECT_EQ(disk.size(), DiskIndex::kMostFiles);
    EXPECT_EQ(dropped(disk).size(), 1100 - DiskIndex::kMostFiles);
}

TEST(DiskIndexTest, WhateverHappensTheBudgetHoldsAndEveryFileIsAccountedFor) {
    std::mt19937 random(5);
    DiskIndex disk = index(2000);
    std::map<std::string, std::uint64_t> files;
    for (int i = 0; i < 4000; ++i) {
        StateOnDisk what = state(std::string(1 + random() % 6, static_cast<char>('a' + random() % 3)) +
                                     static_cast<char>('a' + random() % 4),
                                 random() % 2 ? kAlice : kBob, 50 + random() % 300);
        switch (random() % 5) {
            case 0:
                if (disk.reserve(what.space, what.tokens, what.bytes)) disk.cancel(what.space, what.tokens);
                break;
            case 1:
                disk.use(what.file);
                break;
            case 2:
                disk.drop(what.file);
                break;
            default:
                if (put(disk, what)) files[what.file] = what.bytes;
        }
        for (const std::string& file : dropped(disk)) EXPECT_EQ(files.erase(file), 1U) << file;
        std::uint64_t sum = 0;
        for (const auto& [file, bytes] : files) sum += bytes;
        ASSERT_EQ(disk.bytes(), sum);
        ASSERT_LE(sum, 2000U);
        const auto found = disk.look(kAlice, tokens_of("aaaaaaaab"));
        ASSERT_TRUE(found.file.empty() || files.contains(found.file));
    }
}

}  // namespace
}  // namespace pantheon::actors

// The KV pool: how large it is chosen, and what becomes of streams when it is used up. The fake device
// computes from tokens and KV format alone, so whatever disturbs a sequence shows in its reply.
#include "actors/kv_pool.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <string>

#include "tests/actors/daemon_fixture.h"

namespace pantheon::actors {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

model::CheckpointSizes sizes_with_halves() {
    model::CheckpointSizes sizes{1000, 100, 64};
    sizes.half_block_bytes = 300;
    sizes.sink = 16;
    sizes.window = 128;
    return sizes;
}

TEST(KvBytesTest, AStepKeepsItsRowsInF16BesideTheWindow) {
    const model::CheckpointSizes plain{1000, 100, 64};
    const struct {
        const char* name;
        model::CheckpointSizes sizes;
        bool slides;
        std::int64_t n_rows, n_step;
        std::uint64_t want;
    } kCases[] = {
        {"nothing", plain, false, 0, 1, 0},
        {"one row", plain, false, 1, 1, 100},
        {"whole blocks", plain, false, 129, 64, 300},
        {"no more in f16 than there is", sizes_with_halves(), false, 65, 1, 2 * 400},
        {"sink and window", sizes_with_halves(), false, 6400, 1, 100 * 100 + 4 * 300},
        {"and the step", sizes_with_halves(), false, 6400, 512, 100 * 100 + 12 * 300},
        {"a long context that stops", plain, false, 100'000, 1, 1563 * 100},
        {"one that slides", plain, true, 100'000, 1, 11 * 100},
    };
    for (const auto& c : kCases) {
        SCOPED_TRACE(c.name);
        Limits limits;
        limits.n_ctx = 512;
        limits.slides = c.slides;
        EXPECT_EQ(kv_bytes_needed(c.sizes, limits, c.n_rows, c.n_step), c.want);
    }
}

TEST(ChooseKvPoolTest, ATooSmallOneIsRefusedWithBothNumbers) {
    const model::CheckpointSizes sizes{1000, 100, 64};
    Limits limits;
    limits.n_ctx = 640;
    EXPECT_EQ(*choose_kv_pool(std::nullopt, sizes, limits, 4, 1'000'000), 4 * 1000U) << "slots × n_ctx";
    EXPECT_EQ(*choose_kv_pool(std::nullopt, sizes, limits, 4, 6000), 3000U) << "half of what is free";
    EXPECT_EQ(*choose_kv_pool(std::nullopt, sizes, limits, 4, 10), 1000U) << "one sequence in any case";
    EXPECT_EQ(*choose_kv_pool(1000, sizes, limits, 4, 10), 1000U);
    EXPECT_EQ(*choose_kv_pool(123'456'789, sizes, limits, 4, 10), 123'456'789U);
    const auto refused = choose_kv_pool(999, sizes, limits, 4, 1'000'000);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), Code::invalid_argument);
    EXPECT_THAT(refused.error().message(),
                AllOf(HasSubstr("999 bytes"), HasSubstr("640"), HasSubstr("1000")));
}

class KvPoolTest : public DaemonTest {
  protected:
    KvPoolTest() {
        settings.engine.checkpoint = {1000, kFakeBlockBytes, kFakeBlockRows};
        settings.cache = {64, "", 1 << 20};
    }
    std::vector<TokenId> prompt(std::uint64_t r) const { return long_talker(static_cast<TokenId>('a' + r)); }
    bool has_note(const RequestId& id, const std::string& note) const {
        const auto notes = events<DoneEvent>("c", id).at(0).notes;
        return std::find(notes.begin(), notes.end(), note) != notes.end();
    }
    void expect_whole(const RequestId& id, const std::vector<TokenId>& asked) const {
        EXPECT_EQ(streamed("c", id), expected(asked));
        ASSERT_EQ(events<DoneEvent>("c", id).size(), 1U);
        EXPECT_EQ(events<DoneEvent>("c", id)[0].finish, "length");
    }
};

TEST_F(KvPoolTest, AStepWithoutRoomParksTheNewestAndEveryReplyIsTheOneOfAnUnlimitedRun) {
    control->kv_pool_bytes = 700;  // the actors know of no bound; four streams come to need 12 blocks
    start();
    for (std::uint64_t r = 0; r < 4; ++r) deliver("c", RequestId(r), greedy(prompt(r)));
    run();
    EXPECT_GT(control->n_exhausted, 0);
    EXPECT_LE(control->kv_most_bytes, 700U);
    for (std::uint64_t r = 0; r < 4; ++r) expect_whole(RequestId(r), prompt(r));
    EXPECT_FALSE(has_note(RequestId(std::uint64_t{0}), "parked"));
    EXPECT_TRUE(has_note(RequestId(std::uint64_t{3}), "parked"));
    EXPECT_EQ(snapshot()->n_busy + snapshot()->n_parked, 0);
}

class KvPoolInPartsTest : public KvPoolTest, public testing::WithParamInterface<int> {};

TEST_P(KvPoolInPartsTest, ByTheCountOfTheActorsNoStepNeedsMoreThanThereIs) {
    control->n_parts = GetParam();
    settings.limits.queue = 100;
    settings.engine.kv_pool_bytes = control->kv_pool_bytes = 900;
    start();
    std::mt19937 random(3);
    std::vector<std::vector<TokenId>> asked;
    for (std::uint64_t r = 0; r < 40; ++r) {
        asked.push_back(prompt(random() % 20));
        asked.back().resize(3 + random() % 100, 'x');
        GenerateRequest request = greedy(asked.back());
        request.priority = static_cast<int>(random() % 3);
        request.cache = random() % 2 == 0 ? CacheMode::private_ : CacheMode::off;
        deliver("c", RequestId(r), request);
        for (auto n = random() % 100; n > 0 && scheduler.try_run_once(); --n) continue;
    }
    run();
    EXPECT_EQ(control->n_exhausted, 0);
    EXPECT_GT(control->kv_most_bytes, 600U);
    for (std::uint64_t r = 0; r < 40; ++r) EXPECT_EQ(streamed("c", RequestId(r)), expected(asked[r])) << r;
}

INSTANTIATE_TEST_SUITE_P(Parts, KvPoolInPartsTest, testing::Values(1, 6, 40),
                         testing::PrintToStringParamName());

TEST_F(KvPoolTest, TheLowestPriorityIsParkedFirst) {
    control->kv_pool_bytes = 500;
    start();
    for (std::uint64_t r = 0; r < 2; ++r) {
        GenerateRequest request = greedy(prompt(r));
        request.priority = r == 0 ? -1 : 0;
        deliver("c", RequestId(r), request);
    }
    run();
    for (std::uint64_t r = 0; r < 2; ++r) expect_whole(RequestId(r), prompt(r));
    EXPECT_TRUE(has_note(RequestId(std::uint64_t{0}), "parked"));
    EXPECT_FALSE(has_note(RequestId(std::uint64_t{1}), "parked"));
}

TEST_F(KvPoolTest, WithoutRoomForParkedStatesRepliesAreTheSame) {
    settings.cache.limit_bytes = 0;
    control->kv_pool_bytes = 500;
    start();
    for (std::uint64_t r = 0; r < 4; ++r) deliver("c", RequestId(r), greedy(prompt(r)));
    run();
    for (int i = 0; i < 200; ++i) pass(250ms);  // who was alone without room tries again after a while
    for (std::uint64_t r = 0; r < 4; ++r) expect_whole(RequestId(r), prompt(r));
    EXPECT_EQ(control->n_restored, 0);
}

TEST_F(KvPoolTest, WhoeverIsAloneWaitsUntilThereIsRoomAndDoesNotSpin) {
    control->kv_pool_bytes = 150;
    start();
    deliver("c", RequestId("r"), greedy(prompt(0)));
    run();
    EXPECT_EQ(streamed("c", RequestId("r")).size(), 14U) << "a block of 16 rows is full";
    EXPECT_EQ(control->n_exhausted, 1);
    EXPECT_EQ(snapshot()->n_parked, 1);
    for (int i = 0; i < 40; ++i) pass(250ms);
    EXPECT_LE(control->n_exhausted, 5) << "tries again now and then, less and less often";
    EXPECT_EQ(events<ProgressEvent>("c", RequestId("r")).back().phase, "parked");
    control->kv_pool_bytes = 1000;
    for (int i = 0; i < 40; ++i) pass(250ms);
    expect_whole(RequestId("r"), prompt(0));
}

TEST_F(KvPoolTest, ACancelReachesAStreamThatWaitsForRoom) {
    control->kv_pool_bytes = 150;
    start();
    deliver("c", RequestId("r"), greedy(prompt(0)));
    run();
    deliver("c", RequestId("x"), CancelRequest{RequestId("r")});
    run();
    EXPECT_EQ(events<DoneEvent>("c", RequestId("r")).at(0).finish, "cancelled");
    deliver("c", RequestId("next"), greedy(prompt(1), 5));
    run();
    EXPECT_EQ(streamed("c", RequestId("next")), expected(prompt(1), 5)) << "nobody waits for it any more";
}

TEST_F(KvPoolTest, ASequenceForWhoseStateThereIsNoMemoryWaits) {
    control->fail_bind = false;
    start();
    control->fail_bind = true;
    deliver("c", RequestId("r"), greedy(prompt(0)));
    run();
    EXPECT_TRUE(streamed("c", RequestId("r")).empty());
    EXPECT_TRUE(events<DoneEvent>("c", RequestId("r")).empty());
    control->fail_bind = false;
    for (int i = 0; i < 8; ++i) pass(250ms);
    expect_whole(RequestId("r"), prompt(0));
}

TEST_F(KvPoolTest, APromptWaitsUntilThePoolHasRoomForAllOfIt) {
    settings.engine.kv_pool_bytes = 1000;
    start();
    GenerateRequest held = greedy(prompt(0));
    held.credit = 1;
    deliver("c", RequestId("held"), held);
    run();
    const std::vector<TokenId> large(150, 'p');  // 10 blocks
    deliver("c", RequestId("large"), greedy(large, 1));
    run();
    EXPECT_TRUE(streamed("c", RequestId("large")).empty());
    EXPECT_EQ(snapshot()->n_waiting, 1U);
    deliver("c", RequestId("g"), CreditRequest{RequestId("held"), 100});
    run();
    expect_whole(RequestId("held"), prompt(0));
    EXPECT_EQ(streamed("c", RequestId("large")), expected(large, 1));
}

TEST_F(KvPoolTest, StatusShowsThePoolAndThePlacesThatItLeaves) {
    settings.engine.kv_pool_bytes = 250;
    control->kv_pool_bytes = 250;
    start();
    EXPECT_EQ(snapshot()->kv_pool_bytes, 250U) << "before the first step";
    EXPECT_EQ(snapshot()->n_slots, 2);
    EXPECT_EQ(snapshot()->slots_reason, "kv.pool_bytes");
    GenerateRequest held = greedy(prompt(0));
    held.credit = 1;
    deliver("c", RequestId("held"), held);
    run();
    EXPECT_EQ(snapshot()->kv_used_bytes, 100U);
}

}  // namespace
}  // namespace pantheon::actors

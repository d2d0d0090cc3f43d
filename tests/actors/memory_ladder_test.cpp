// The memory ladder through the whole actor tree: readings come from the test, replies from a fake device
// that computes from tokens alone, so that whatever a rung disturbs shows in a reply.
#include <algorithm>

#include "tests/actors/daemon_fixture.h"

namespace pantheon::actors {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kLimit = 10000;
constexpr std::uint64_t kPlenty = 9000, kTight = 900, kCritical = 100;

/// Readings when the test says so.
class FakeReadings : public ReadingSource {
  public:
    void set_sink(std::function<void(MemoryReadings)> sink) override {
        sink_ = std::move(sink);
        ++n_sinks;
    }
    void show(std::uint64_t free_bytes) {
        MemoryReadings readings;
        readings.at = now_;
        readings.rooms.push_back({"host", kLimit, free_bytes});
        now_ += 1s;
        sink_(std::move(readings));
    }
    int n_sinks = 0;

  private:
    std::function<void(MemoryReadings)> sink_;
    Clock::time_point now_{};
};

class MemoryLadderTest : public DaemonTest {
  protected:
    MemoryLadderTest() {
        settings.engine.n_slots = 16;
        settings.limits.queue = 64;
        settings.engine.checkpoint = {1000, 100, kFakeBlockRows};
        settings.engine.repack = model::Repack::all;
        settings.cache.every = 64;
        settings.cache.limit_bytes = 1 << 20;
        settings.memory.source = readings;
        settings.memory.ladder.dwell = 500ms;  // readings are a second apart
        settings.memory.ladder.step = 0ms;
        control->n_to_pack = 5;
    }

    Json status() {
        const RequestId id(std::uint64_t{1000 + n_asked_++});
        deliver("observer", id, StatusRequest{});
        run();
        return events<ResultEvent>("observer", id).at(0).value;
    }

    void climb_to(int rung) {
        while (snapshot()->memory_rung < rung) {
            readings->show(rung == kTopRung ? kCritical : kTight);
            run();
        }
    }

    /// Streams that wait for credit, so that nothing goes on unless the test lets it.
    void begin_streams(std::uint64_t n) {
        for (std::uint64_t r = 0; r < n; ++r) {
            GenerateRequest request = greedy(prompt(r));
            request.cache = CacheMode::private_;
            request.credit = 5;
            deliver("c", RequestId(r), request);
        }
        run();
    }
    void let_go(std::uint64_t n, std::int64_t n_tokens) {
        for (std::uint64_t r = 0; r < n; ++r)
            deliver("c", RequestId("credit"), CreditRequest{RequestId(r), n_tokens});
        run();
    }
    std::vector<TokenId> prompt(std::uint64_t r) const { return long_talker(static_cast<TokenId>('a' + r)); }
    void expect_complete(std::uint64_t r) {
        SCOPED_TRACE(r);
        EXPECT_EQ(streamed("c", RequestId(r)), expected(prompt(r)));
        EXPECT_EQ(events<AcceptedEvent>("c", RequestId(r)).size(), 1U);
        EXPECT_EQ(events<DoneEvent>("c", RequestId(r)).size(), 1U);
    }
    void fill_cache(std::uint64_t n) {
        for (std::uint64_t r = 0; r < n; ++r) {
            GenerateRequest request = greedy(std::vector<TokenId>(100, static_cast<TokenId>('A' + r)), 1);
            request.cache = CacheMode::private_;
            deliver("filler", RequestId(r), request);
            run();
        }
    }

    std::shared_ptr<FakeReadings> readings = std::make_shared<FakeReadings>();

  private:
    std::uint64_t n_asked_ = 0;
};

TEST_F(MemoryLadderTest, SixteenStreamsOutliveAShortageAndEachRungIsFelt) {
    start();
    fill_cache(10);
    EXPECT_EQ(status()["memory"], (Json{{"level", "OK"}, {"rung", 0}}));
    const SnapshotPtr before = snapshot();
    EXPECT_EQ(before->repack_bytes, 5U);
    begin_streams(20);  // four more than there are slots
    const std::uint64_t held = snapshot()->cache_bytes;
    EXPECT_GE(held, before->cache_bytes);

    readings->show(kTight);
    run();
    EXPECT_EQ(status()["memory"], (Json{{"level", "TIGHT"}, {"rung", 1}}));
    EXPECT_LE(snapshot()->cache_bytes, held / 2);
    EXPECT_EQ(snapshot()->n_busy, 16) << "who runs goes on";

    readings->show(kTight);
    run();
    EXPECT_EQ(status()["engines"][0]["slots"]["effective"], 8);
    EXPECT_EQ(status()["engines"][0]["slots"]["reason"], "memory");

    readings->show(kTight);
    run();
    EXPECT_EQ(snapshot()->memory_rung, 3);
    EXPECT_EQ(snapshot()->repack_bytes, 0U);

    readings->show(kCritical);
    run();
    EXPECT_EQ(status()["memory"], (Json{{"level", "CRITICAL"}, {"rung", 5}}));
    EXPECT_EQ(status()["engines"][0]["slots"]["effective"], 1);
    EXPECT_EQ(snapshot()->cache_bytes, 0U);
    deliver("late", RequestId("late"), greedy({'l'}));
    run();
    const auto refused = events<ErrorEvent>("late", RequestId("late"));
    ASSERT_EQ(refused.size(), 1U);
    EXPECT_EQ(refused[0].error.code(), Code::resource_exhausted);
    ASSERT_TRUE(refused[0].retry_after_ms.has_value());
    EXPECT_EQ(*refused[0].retry_after_ms, settings.memory.ladder.dwell.count());

    // What was accepted before goes to its end meanwhile; what waited begins when it is alone.
    let_go(20, 10);
    let_go(20, 100);
    for (std::uint64_t r = 0; r < 20; ++r) expect_complete(r);
    EXPECT_EQ(events<DoneEvent>("c", RequestId(std::uint64_t{0}))[0].notes,
              std::vector<std::string>{"memory_rung_5"});

    std::vector<int> rungs;
    for (int i = 0; i < 8; ++i) {
        readings->show(kPlenty);
        run();
        rungs.push_back(snapshot()->memory_rung);
    }
    EXPECT_EQ(rungs, (std::vector<int>{5, 4, 3, 2, 1, 0, 0, 0}));
    const SnapshotPtr after = snapshot();
    EXPECT_EQ(after->memory_level, MemoryLevel::ok);
    EXPECT_EQ(after->n_slots, 16);
    EXPECT_EQ(after->repack_bytes, 5U) << "packed again";
    EXPECT_EQ(after->cache_limit_bytes, settings.cache.limit_bytes);
    EXPECT_EQ(after->memory_counters.n_refused, 1U);
    EXPECT_EQ(after->memory_counters.n_unpacked, 1U);
    EXPECT_EQ(after->memory_counters.n_rungs_up, 5U);
    EXPECT_EQ(after->memory_counters.n_rungs_down, 5U);
    EXPECT_GT(after->memory_counters.cache_bytes_dropped, 0U);

    deliver("late", RequestId("again"), greedy({'l'}));
    run();
    EXPECT_EQ(streamed("late", RequestId("again")), expected({'l'}));
    EXPECT_TRUE(events<DoneEvent>("late", RequestId("again"))[0].notes.empty());
}

TEST_F(MemoryLadderTest, TheCacheDoesNotGrowPastWhatTheRungLeaves) {
    start();
    fill_cache(10);
    climb_to(1);
    const std::uint64_t left = snapshot()->cache_bytes;
    for (int i = 0; i < 3; ++i) {
        readings->show(kTight + 300);  // not tight, not clearly better: the rung stays
        run();
        fill_cache(20);
        EXPECT_LE(snapshot()->cache_bytes, snapshot()->cache_limit_bytes);
        EXPECT_GE(snapshot()->cache_limit_bytes, left) << "the same order does not shrink it again";
    }
}

TEST_F(MemoryLadderTest, FromRungThreeOnPromptsAreReadInSmallPieces) {
    settings.limits.n_ctx = 512;
    start();
    climb_to(3);
    control->rows_per_step.clear();
    const std::vector<TokenId> prompt(400, 'p');
    deliver("c", RequestId("p"), greedy(prompt, 4));
    run();
    EXPECT_EQ(streamed("c", RequestId("p")), expected(prompt, 4));
    EXPECT_LE(*std::max_element(control->rows_per_step.begin(), control->rows_per_step.end()), 64U);
}

TEST_F(MemoryLadderTest, AKilledLadderIsReplacedAndTheRungIsDerivedAgain) {
    start();
    climb_to(5);
    kill(wiring->memory_ladder);
    run();
    EXPECT_EQ(readings->n_sinks, 2);
    EXPECT_EQ(snapshot()->memory_rung, 5) << "the orders in force stay until there are readings";
    readings->show(kCritical + 350);  // neither critical nor clearly better
    run();
    EXPECT_EQ(snapshot()->memory_level, MemoryLevel::critical);
    EXPECT_EQ(snapshot()->memory_rung, 5);
    for (int i = 0; i < 8; ++i) readings->show(kPlenty);
    run();
    EXPECT_EQ(snapshot()->memory_rung, 0);
    deliver("c", RequestId("r"), greedy({'g'}));
    run();
    EXPECT_EQ(streamed("c", RequestId("r")), expected({'g'}));
}

TEST_F(MemoryLadderTest, AKilledSchedulerIsToldTheOrdersAgainAndLosesNothing) {
    start();
    begin_streams(16);
    climb_to(4);
    kill(wiring->scheduler);
    run();
    pass(1s);
    EXPECT_EQ(snapshot()->memory_rung, 4);
    EXPECT_EQ(snapshot()->n_slots, 8);
    let_go(16, 100);
    for (std::uint64_t r = 0; r < 16; ++r) expect_complete(r);
}

TEST_F(MemoryLadderTest, AReplacedDieKeepsNothingPackedWhileMemoryIsShort) {
    start();
    begin_streams(4);
    climb_to(3);
    kill(wiring->die);
    run();
    EXPECT_EQ(control->n_created, 2);
    EXPECT_EQ(snapshot()->repack_bytes, 0U);
    let_go(4, 100);
    for (std::uint64_t r = 0; r < 4; ++r) expect_complete(r);
}

TEST_F(MemoryLadderTest, SwitchedOffItDoesNothing) {
    settings.memory.ladder.is_enabled = false;
    start();
    readings->show(kCritical);
    run();
    EXPECT_EQ(snapshot()->memory_rung, 0);
    deliver("c", RequestId("r"), greedy({'g'}));
    run();
    EXPECT_EQ(streamed("c", RequestId("r")), expected({'g'}));
}

}  // namespace
}  // namespace pantheon::actors

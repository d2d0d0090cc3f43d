// The prefix cache on disk through the whole actor tree, with the real files and the fake device, which
// computes from tokens alone: a wrong state gives a wrong reply.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>

#include "tests/actors/daemon_fixture.h"

namespace pantheon::actors {
namespace {

using namespace std::chrono_literals;

class SpillTest : public DaemonTest {
  protected:
    SpillTest() {
        dir_ = std::filesystem::temp_directory_path() / ("spill_test." + std::to_string(getpid()));
        std::filesystem::remove_all(dir_);
        settings.model.fingerprint = "model";
        settings.limits.queue = 64;
        settings.engine.checkpoint = {1000, 100, kFakeBlockRows};
        settings.engine.codec = fake_codec();
        settings.cache = {64, dir_.string(), 40000, 1 << 20};
    }
    ~SpillTest() override { std::filesystem::remove_all(dir_); }

    void stop() {
        wiring.reset();
        is_stopped = false;
        caf::anon_send(root, BeginDrain{0ms});
        run();
        for (int i = 0; i < 100 && !is_stopped; ++i) pass(100ms);
        ASSERT_TRUE(is_stopped);
    }
    void restart() {
        stop();
        start();
    }

    GenerateRequest request(std::vector<TokenId> prompt) const {
        GenerateRequest request = greedy(std::move(prompt), 4);
        request.cache = CacheMode::private_;
        return request;
    }

    /// Runs a request to its end; how many tokens of its prompt were not evaluated. Checks the reply and that
    /// exactly the others were.
    std::int64_t cached(const std::vector<TokenId>& prompt, std::uint32_t uid = 1000) {
        const RequestId id(n_requests_++);
        control->rows_per_step.clear();
        deliver("c", id, request(prompt), uid);
        run();
        const auto done = events<DoneEvent>("c", id);
        EXPECT_EQ(done.size(), 1U);
        if (done.size() != 1) return -1;
        EXPECT_EQ(streamed("c", id), expected(prompt, 4));
        const Usage& usage = done[0].usage;
        const auto n_rows =
            std::accumulate(control->rows_per_step.begin(), control->rows_per_step.end(), std::size_t{0});
        EXPECT_EQ(static_cast<std::int64_t>(n_rows),
                  usage.prompt_tokens - usage.cached_tokens + usage.completion_tokens - 1);
        return usage.cached_tokens;
    }

    /// Fills memory with other prompts until what was there before has gone.
    void push_out() {
        for (TokenId first = 'A'; first <= 'Z'; ++first) cached(text(200, first), 77);
    }

    std::vector<std::filesystem::path> files() const {
        std::vector<std::filesystem::path> found;
        if (std::filesystem::exists(dir_))
            for (const auto& entry : std::filesystem::directory_iterator(dir_)) found.push_back(entry.path());
        return found;
    }
    std::uint64_t bytes_on_disk() const {
        std::uint64_t sum = 0;
        for (const auto& path : files()) sum += std::filesystem::file_size(path);
        return sum;
    }

    static std::vector<TokenId> text(std::size_t n, TokenId first = 'a') {
        std::vector<TokenId> tokens(n);
        for (std::size_t i = 0; i < n; ++i) tokens[i] = 'a' + static_cast<TokenId>((i * 7 + first) % 26);
        tokens[0] = first;
        return tokens;
    }

    std::filesystem::path dir_;
    std::uint64_t n_requests_ = 0;
};

TEST_F(SpillTest, WhatMemoryHasLostServesFromDisk) {
    start();
    EXPECT_EQ(cached(text(300)), 0);
    push_out();
    EXPECT_LE(snapshot()->cache_bytes, settings.cache.limit_bytes);
    const auto hits = snapshot()->cache_hits;
    EXPECT_EQ(cached(text(300)), 299);
    EXPECT_EQ(snapshot()->cache_hits, hits + 1);
    EXPECT_EQ(snapshot()->cache_disk_bytes, bytes_on_disk());
    auto edited = text(300);
    edited[200] = '!';
    push_out();
    EXPECT_EQ(cached(edited), 192) << "sessions.every = 64";
}

TEST_F(SpillTest, WithoutASpaceForItNothingIsWritten) {
    settings.cache.disk_bytes = 0;
    start();
    cached(text(300));
    push_out();
    EXPECT_EQ(cached(text(300)), 0);
    restart();
    EXPECT_TRUE(files().empty());
    EXPECT_EQ(snapshot()->cache_disk_bytes, 0U);
}

TEST_F(SpillTest, AfterACleanStopEverythingIsFoundAgain) {
    start();
    EXPECT_EQ(cached(text(300)), 0);
    auto edited = text(300);
    edited[100] = '!';
    restart();
    EXPECT_EQ(snapshot()->cache_bytes, 0U);
    EXPECT_EQ(snapshot()->cache_disk_bytes, bytes_on_disk());
    EXPECT_EQ(cached(text(300)), 299);
    EXPECT_EQ(cached(edited), 64);
    // The reply's own end too.
    auto more = text(300);
    for (const TokenId token : fake_reply(more, 4, end)) more.push_back(token);
    more.push_back('?');
    EXPECT_EQ(cached(more), 303);
}

TEST_F(SpillTest, WithoutACleanStopWhatWasWrittenBeforeIsFound) {
    start();
    cached(text(300));
    push_out();
    wiring.reset();
    caf::anon_send(root, Shutdown{});
    run();
    start();
    EXPECT_EQ(cached(text(300)), 299);
}

TEST_F(SpillTest, OneClientsFilesDoNotServeAnother) {
    start();
    cached(text(300), 1000);
    restart();
    EXPECT_EQ(cached(text(300), 2000), 0);
    EXPECT_EQ(cached(text(300), 1000), 299);
}

TEST_F(SpillTest, ADamagedFileCostsTimeOnlyAndIsRemoved) {
    start();
    cached(text(300));
    stop();
    const std::size_t n_files = files().size();
    for (const auto& path : files()) {
        std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(-12, std::ios::end);
        file.put('\x7f');
    }
    start();
    EXPECT_EQ(files().size(), n_files) << "heads are in order";
    EXPECT_EQ(cached(text(300)), 0);
    EXPECT_EQ(snapshot()->cache_disk_bytes, bytes_on_disk());
    EXPECT_LT(files().size(), n_files);
    EXPECT_EQ(cached(text(300)), 299);
}

TEST_F(SpillTest, AnotherModelsFilesServeNobodyAndGoFirst) {
    start();
    cached(text(300));
    stop();
    const std::uint64_t before = bytes_on_disk();
    settings.model.fingerprint = "other";
    settings.cache.disk_bytes = before + 100;
    start();
    EXPECT_EQ(cached(text(300)), 0);
    EXPECT_EQ(snapshot()->cache_disk_bytes, before);
    restart();
    EXPECT_LE(bytes_on_disk(), settings.cache.disk_bytes);
    EXPECT_EQ(cached(text(300)), 299);
}

TEST_F(SpillTest, ALostDieLeavesTheDisk) {
    start();
    cached(text(300));
    push_out();
    kill(wiring->die);
    run();
    EXPECT_EQ(snapshot()->cache_bytes, 0U);
    EXPECT_EQ(cached(text(300)), 299);
}

TEST_F(SpillTest, AStoreThatDiesMeanwhileOnlyCostsTime) {
    start();
    cached(text(300));
    restart();
    // The scheduler is made to hear of it as late as can be.
    auto late = std::make_shared<Wiring>(*wiring);
    kill(late->store);
    run();
    ASSERT_NE(wiring->store, late->store);
    caf::anon_send(wiring->scheduler, WiringPtr(late));
    EXPECT_EQ(cached(text(300)), 0);
    caf::anon_send(wiring->scheduler, WiringPtr(wiring));
    run();
    EXPECT_EQ(snapshot()->cache_disk_bytes, bytes_on_disk());
    cached(text(300, 'b'));
    restart();
    EXPECT_EQ(cached(text(300, 'b')), 299);
}

TEST_F(SpillTest, AReplacedSchedulerKnowsWhatLiesThere) {
    start();
    cached(text(300));
    push_out();
    kill(wiring->scheduler);
    run();
    EXPECT_EQ(snapshot()->cache_disk_bytes, bytes_on_disk());
    EXPECT_EQ(cached(text(300)), 299);
}

TEST_F(SpillTest, AStateThatTheDieCannotTakeIsTriedOnce) {
    start();
    cached(text(300));
    restart();
    control->fail_restore = true;
    EXPECT_EQ(cached(text(300)), 0);
    control->fail_restore = false;
}

TEST_F(SpillTest, WithoutRoomInMemoryNothingIsLoaded) {
    start();
    cached(text(300));
    stop();
    settings.cache.limit_bytes = 1500;  // less than the file's state
    start();
    EXPECT_EQ(cached(text(300)), 0);
    EXPECT_LE(snapshot()->cache_bytes, 1500U);
}

TEST_F(SpillTest, WhoIsCancelledWhileItsStateIsReadIsAnsweredOnce) {
    start();
    cached(text(300));
    restart();
    deliver("c", RequestId("r"), request(text(300)));
    deliver("c", RequestId("x"), CancelRequest{RequestId("r")});
    run();
    EXPECT_EQ(events<DoneEvent>("c", RequestId("r")).size(), 1U);
    EXPECT_EQ(cached(text(300)), 299);
}

TEST_F(SpillTest, OthersGoOnWhileOneWaitsAndThoseThatWaitForTheSameFileShareIt) {
    start();
    cached(text(300));
    restart();
    for (const char* id : {"1", "2", "3"}) deliver("c", RequestId(id), request(text(300)));
    deliver("c", RequestId("other"), request(text(100, 'q')));
    run();
    EXPECT_EQ(streamed("c", RequestId("other")), expected(text(100, 'q'), 4));
    for (const char* id : {"1", "2", "3"}) {
        EXPECT_EQ(streamed("c", RequestId(id)), expected(text(300), 4));
        EXPECT_EQ(events<DoneEvent>("c", RequestId(id)).at(0).usage.cached_tokens, 299);
    }
    EXPECT_EQ(control->n_restored, 3);
}

TEST_F(SpillTest, WhileMemoryIsTightWhatGoesIsWrittenFirst) {
    settings.cache.limit_bytes = 1 << 20;
    start();
    for (TokenId first = 'a'; first < 'k'; ++first) cached(text(200, first));
    EXPECT_TRUE(files().empty()) << "there was room";
    const std::uint64_t before = snapshot()->cache_bytes;
    MemoryOrders orders;
    orders.level = MemoryLevel::tight;
    orders.rung = 1;
    orders.cache_may_grow = false;
    orders.cache_keep = 0.5;
    caf::anon_send(wiring->scheduler, MemoryOrders(orders));
    run();
    EXPECT_LE(snapshot()->cache_bytes, before / 2);
    EXPECT_EQ(snapshot()->memory_counters.cache_bytes_dropped, before - snapshot()->cache_bytes);
    EXPECT_FALSE(files().empty());
    orders = {};
    caf::anon_send(wiring->scheduler, MemoryOrders(orders));
    for (TokenId first = 'a'; first < 'k'; ++first) EXPECT_GE(cached(text(200, first)), 192) << first;
}

TEST_F(SpillTest, AFolderThatCannotBeWrittenChangesNothing) {
    settings.cache.dir = (dir_ / "no" / "such" / "folder").string();
    start();
    cached(text(300));
    push_out();
    EXPECT_EQ(cached(text(300)), 0);
    EXPECT_EQ(snapshot()->cache_disk_bytes, 0U);
    stop();
}

TEST_F(SpillTest, AReloadThatTurnsItOffRemovesTheFiles) {
    start();
    cached(text(300));
    push_out();
    ASSERT_FALSE(files().empty());
    auto off = std::make_shared<DaemonSettings>(settings);
    off->cache.disk_bytes = 0;
    caf::anon_send(wiring->scheduler, SettingsPtr(off));
    run();
    EXPECT_TRUE(files().empty());
    EXPECT_EQ(snapshot()->cache_disk_bytes, 0U);
}

TEST_F(SpillTest, ADroppedSessionLeavesNoFileOfItsState) {
    start();
    auto named = request(text(300));
    named.session = "talk";
    deliver("c", RequestId("r"), named);
    run();
    restart();
    const std::size_t n_files = files().size();
    named.input = text(300);
    deliver("c", RequestId("again"), named);  // the same state has the name again
    deliver("c", RequestId("drop"), SessionRequest{"session.drop", "talk", CacheMode::private_});
    run();
    deliver("c", RequestId("drop2"), SessionRequest{"session.drop", "talk", CacheMode::private_});
    run();
    EXPECT_EQ(files().size(), n_files - 1);
}

TEST_F(SpillTest, BothBudgetsHoldAndNothingIsForgotten) {
    settings.cache.limit_bytes = 15000;
    settings.cache.disk_bytes = 12000;
    start();
    std::mt19937 random(7);
    for (int round = 0; round < 80; ++round) {
        auto prompt = text(20 + random() % 200, static_cast<TokenId>('a' + random() % 4));
        prompt.back() = '0' + static_cast<TokenId>(random() % 10);
        deliver("c", RequestId("x" + std::to_string(round)), request(prompt));
        if (random() % 5 == 0)
            deliver("c", RequestId("cancel"), CancelRequest{RequestId("x" + std::to_string(round))});
        if (random() % 3 == 0) run();
        if (random() % 20 == 0) kill(wiring->store);
        if (round % 20 == 19) restart();
        const SnapshotPtr amid = snapshot();
        EXPECT_LE(amid->cache_bytes, 15000U);
        EXPECT_LE(amid->cache_disk_bytes, 12000U);
        const SnapshotPtr now = snapshot();  // all is done
        EXPECT_LE(now->cache_bytes, 15000U);
        EXPECT_LE(now->cache_disk_bytes, 12000U);
        EXPECT_LE(bytes_on_disk(), 12000U);
        EXPECT_EQ(now->cache_disk_bytes, bytes_on_disk());
    }
    EXPECT_FALSE(files().empty());
    EXPECT_LE(control->n_held() * 1000, snapshot()->cache_bytes);
}

}  // namespace
}  // namespace pantheon::actors

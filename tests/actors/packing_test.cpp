// Weights are packed beside the steps, not before the first one.
#include <limits>
#include <thread>

#include "tests/actors/daemon_fixture.h"

namespace pantheon::actors {
namespace {

class PackingTest : public DaemonTest {
  protected:
    PackingTest() { settings.engine.repack = model::Repack::all; }

    std::uint64_t reported_bytes() {
        deliver("observer", std::uint64_t{++n_asked_}, StatusRequest{});
        run();
        const auto results = events<ResultEvent>("observer", std::uint64_t{n_asked_});
        return results.back().value["engines"][0]["dies"][0]["repack_bytes"].get<std::uint64_t>();
    }

  private:
    std::uint64_t n_asked_ = 0;
};

TEST_F(PackingTest, IsDoneByItselfAndReportedWhenNobodyAsksForAnything) {
    control->n_to_pack = 5;
    start();
    EXPECT_TRUE(is_ready);
    EXPECT_EQ(reported_bytes(), 5u);
    deliver("a", std::uint64_t{1}, greedy({'a', 'b'}));
    run();
    EXPECT_EQ(reported_bytes(), 5u) << "a request that ends takes no packed weights with it";
}

/// The die has a thread of its own here, so that it packs while the others work: this test waits in real
/// time.
TEST_F(PackingTest, TheDaemonIsReadyAndStreamsBeforeItIsDone) {
    settings.engine.is_die_detached = true;
    control->n_to_pack = std::numeric_limits<int>::max();
    launch();
    const auto wait_for = [this](auto condition) {
        const auto give_up = Clock::now() + std::chrono::seconds(60);
        while (!condition() && Clock::now() < give_up)
            if (!scheduler.try_run_once()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return condition();
    };
    ASSERT_TRUE(wait_for([this] { return is_ready; }));
    deliver("a", std::uint64_t{1}, greedy({'a', 'b'}));
    ASSERT_TRUE(wait_for([this] { return !events<DoneEvent>("a", std::uint64_t{1}).empty(); }));
    EXPECT_EQ(streamed("a", std::uint64_t{1}), expected({'a', 'b'}));
    EXPECT_FALSE(control->is_packed);
    caf::anon_send(root, Shutdown{});
    EXPECT_TRUE(wait_for([this] { return is_stopped; }));
    wiring.reset();
    root = SupervisorActor();
}

TEST_F(PackingTest, WithoutMemoryForAllOfItWhatIsPackedStays) {
    control->n_to_pack = 5;
    control->no_memory_after = 3;
    start();
    EXPECT_EQ(reported_bytes(), 3u);
    deliver("a", std::uint64_t{1}, greedy({'a', 'b'}));
    run();
    EXPECT_EQ(streamed("a", std::uint64_t{1}), expected({'a', 'b'}));
}

TEST_F(PackingTest, AReplacedDiePacksAgain) {
    control->n_to_pack = 5;
    start();
    kill(wiring->die);
    run();
    EXPECT_EQ(control->n_created, 2);
    EXPECT_EQ(reported_bytes(), 5u);
}

}  // namespace
}  // namespace pantheon::actors

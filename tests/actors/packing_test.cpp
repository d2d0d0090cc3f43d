// Weights are packed beside the steps, not before the first one.
#include <utility>

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

TEST_F(PackingTest, TheDaemonIsReadyAndStreamsBeforeItIsDone) {
    control->n_to_pack = 100;
    bool was_ready = false, has_streamed = false;
    control->during_each_pack = [&] {
        scheduler.run();  // what the others have to do
        if (is_ready && !std::exchange(was_ready, true)) deliver("a", std::uint64_t{1}, greedy({'a', 'b'}));
        has_streamed = has_streamed || !events<DoneEvent>("a", std::uint64_t{1}).empty();
    };
    start();
    control->during_each_pack = nullptr;
    EXPECT_TRUE(control->is_packed);
    EXPECT_TRUE(was_ready);
    EXPECT_TRUE(has_streamed);
    EXPECT_EQ(streamed("a", std::uint64_t{1}), expected({'a', 'b'}));
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

// Settings that change under running requests, the canary, and the signs of life that the watchdog gets.
#include <thread>

#include "actors/canary.h"
#include "tests/actors/daemon_fixture.h"

namespace pantheon::actors {
namespace {

using namespace std::chrono_literals;

/// A configuration "file" that the test writes.
struct FakeConfigSource : ConfigSource {
    std::optional<Error> error;
    std::int64_t max_tokens = 64;
    std::size_t queue = 8;
    std::vector<std::string> pending;
    bool throws = false;
    int n_reloads = 0;

    ReloadOutcome reload(const DaemonSettings& in_force, bool is_dry_run) override {
        ++n_reloads;
        if (std::exchange(throws, false)) throw std::runtime_error("injected");
        ReloadOutcome outcome;
        outcome.file = "test.toml";
        outcome.is_dry_run = is_dry_run;
        outcome.error = error;
        if (error) return outcome;
        if (in_force.limits.max_tokens != max_tokens)
            outcome.applied.push_back({"limits.max_tokens", std::to_string(in_force.limits.max_tokens),
                                       std::to_string(max_tokens)});
        for (const std::string& key : pending) outcome.pending_restart.push_back({key, "1", "2"});
        if (is_dry_run) return outcome;
        auto next = std::make_shared<DaemonSettings>(in_force);
        next->limits.max_tokens = max_tokens;
        next->limits.queue = queue;
        next->pending_restart = pending;
        outcome.settings = std::move(next);
        return outcome;
    }
};

class ReloadTest : public DaemonTest {
  protected:
    ReloadTest() { settings.config_source = source; }

    /// The reply of an administrator's reload.
    Json reload(const std::string& id, bool is_dry_run = false) {
        deliver("admin", RequestId(id), ReloadRequest{is_dry_run}, 0);
        run();
        const auto results = events<ResultEvent>("admin", RequestId(id));
        return results.size() == 1 ? results[0].value : Json();
    }

    std::shared_ptr<FakeConfigSource> source = std::make_shared<FakeConfigSource>();
};

TEST_F(ReloadTest, LiveKeysTakeEffectForTheNextRequestAndAreListed) {
    start();
    source->max_tokens = 5;
    source->pending = {"kv.n_ctx"};
    const Json reply = reload("reload");
    ASSERT_EQ(reply["applied"].size(), 1U);
    EXPECT_EQ(reply["applied"][0]["key"], "limits.max_tokens");
    EXPECT_EQ(reply["applied"][0]["after"], "5");
    EXPECT_EQ(reply["pending_restart"][0]["key"], "kv.n_ctx");
    deliver("c", RequestId("r"), greedy(long_talker('a')));
    deliver("c", RequestId("status"), StatusRequest{});
    run();
    EXPECT_EQ(streamed("c", RequestId("r")).size(), 5U);
    EXPECT_EQ(events<ResultEvent>("c", RequestId("status"))[0].value["config"]["pending_restart"],
              Json::array({"kv.n_ctx"}));
}

TEST_F(ReloadTest, ADryRunSaysWhatWouldChangeAndChangesNothing) {
    start();
    source->max_tokens = 5;
    EXPECT_EQ(reload("dry", true)["applied"].size(), 1U);
    deliver("c", RequestId("r"), greedy(long_talker('a')));
    run();
    EXPECT_EQ(streamed("c", RequestId("r")).size(), 40U);
}

TEST_F(ReloadTest, ABrokenFileIsOneErrorWithAllItsProblemsAndChangesNothing) {
    start();
    source->error = Error(Code::invalid_argument, "t.toml:1:2: first\nt.toml:3:4: second");
    reload("reload");
    const auto errors = events<ErrorEvent>("admin", RequestId("reload"));
    ASSERT_EQ(errors.size(), 1U);
    EXPECT_NE(errors[0].error.message().find("t.toml:3:4: second"), std::string::npos);
    deliver("c", RequestId("r"), greedy(long_talker('a')));
    run();
    EXPECT_EQ(streamed("c", RequestId("r")).size(), 40U);
}

TEST_F(ReloadTest, RunningRequestsKeepWhatTheyWereAdmittedWith) {
    start();
    const auto prompt = long_talker('a');
    deliver("c", RequestId("r"), greedy(prompt));
    int n = 0;
    while (!scheduler.jobs.empty() && n < 100) {
        run_until([&] { return streamed("c", RequestId("r")).size() > static_cast<std::size_t>(n) / 3; });
        source->max_tokens = 1 + n % 7;
        source->error = n % 2 == 0 ? std::optional<Error>() : Error(Code::invalid_argument, "broken");
        deliver("admin", RequestId(static_cast<std::uint64_t>(n++)), ReloadRequest{}, 0);
    }
    run();
    EXPECT_GE(n, 30);
    EXPECT_EQ(streamed("c", RequestId("r")), expected(prompt));
}

TEST_F(ReloadTest, OnlyAdministratorsReload) {
    start();
    deliver("c", RequestId("r"), ReloadRequest{}, 4242);
    run();
    ASSERT_EQ(events<ErrorEvent>("c", RequestId("r")).size(), 1U);
    EXPECT_EQ(events<ErrorEvent>("c", RequestId("r"))[0].error.code(), Code::permission_denied);
    EXPECT_EQ(source->n_reloads, 0);
}

TEST_F(ReloadTest, WithoutAFileThereIsNothingToReload) {
    settings.config_source = nullptr;
    start();
    reload("r");
    ASSERT_EQ(events<ErrorEvent>("admin", RequestId("r")).size(), 1U);
    EXPECT_EQ(events<ErrorEvent>("admin", RequestId("r"))[0].error.code(), Code::failed_precondition);
}

TEST_F(ReloadTest, AConfigWatcherThatDiesIsReplacedAndTheOldConfigurationStays) {
    start();
    source->throws = true;
    reload("failing");
    EXPECT_EQ(events<ErrorEvent>("admin", RequestId("failing")).size(), 1U);
    source->max_tokens = 5;
    EXPECT_EQ(reload("again")["applied"].size(), 1U);
    deliver("c", RequestId("r"), greedy(long_talker('a')));
    run();
    EXPECT_EQ(streamed("c", RequestId("r")).size(), 5U);
}

TEST_F(ReloadTest, PartsThatAreReplacedLaterStartWithTheNewSettings) {
    start();
    source->max_tokens = 5;
    reload("r");
    kill(wiring->text);
    run();
    deliver("c", RequestId("r"), greedy(long_talker('a')));
    run();
    EXPECT_EQ(streamed("c", RequestId("r")).size(), 5U);
}

// ---- signs of life

TEST_F(DaemonTest, SignsOfLifeComeWhileStepsMakeProgressAndStopWhenOneHangs) {
    int n_alive = 0;
    settings.limits.hang = 20ms;
    more_events.alive_interval = 100ms;
    more_events.on_alive = [&](const EngineSnapshot&) { ++n_alive; };
    start();
    for (int i = 0; i < 5; ++i) pass(100ms);
    EXPECT_EQ(n_alive, 5);

    // In the middle of one step more time passes than a step may take; the rest of the daemon goes on.
    int n_during_step = -1;
    deliver("c", RequestId("r"), greedy(long_talker('a')));
    run_until([&] { return !streamed("c", RequestId("r")).empty(); });
    control->during_next_step = [&] {
        std::this_thread::sleep_for(2 * settings.limits.hang);
        n_during_step = n_alive;
        for (int i = 0; i < 3; ++i) pass(100ms);
        n_during_step = n_alive - n_during_step;
    };
    run();
    EXPECT_EQ(n_during_step, 0);
    EXPECT_EQ(streamed("c", RequestId("r")), expected(long_talker('a')));
    const int n_before = n_alive;
    for (int i = 0; i < 5; ++i) pass(100ms);
    EXPECT_EQ(n_alive, n_before + 5);
}

// ---- the canary

TEST_F(DaemonTest, ADeviceThatGivesNonsenseIsNotReady) {
    struct Case {
        const char* name;
        FakeDeviceControl::Nonsense nonsense;
        const char* says;
    };
    const Case cases[] = {
        {"not finite", FakeDeviceControl::Nonsense::nan, "not finite"},
        {"flat", FakeDeviceControl::Nonsense::flat, "flat"},
        {"always the same", FakeDeviceControl::Nonsense::constant, "same logits"},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        control->nonsense = c.nonsense;
        auto executor = make_fake_executor(control, 2, 64, settings.text.tokenizer->n_vocab(), end);
        const Status status = run_canary(*executor, *settings.text.tokenizer);
        ASSERT_FALSE(status);
        EXPECT_EQ(status.error().code(), Code::data_loss);
        EXPECT_NE(status.error().message().find(c.says), std::string::npos) << status.error().to_string();
        EXPECT_EQ(executor->length(SlotId(0)), -1);
    }
    start();
    EXPECT_FALSE(is_ready);
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code(), Code::data_loss);
}

}  // namespace
}  // namespace pantheon::actors

// A whole actor tree on CAF's test scheduler: everything runs in the test's thread, time is virtual.
#pragma once

#include <gtest/gtest.h>

#include <caf/scheduler/test_coordinator.hpp>
#include <limits>

#include "actors/supervisor.h"
#include "tests/actors/fake_engine.h"
#include "tests/model/tokenizer/small_vocabulary.h"

namespace pantheon::actors {

struct TestConfig : caf::actor_system_config {
    TestConfig() { set("scheduler.policy", caf::atom("testing")); }
};

class DaemonTest : public ::testing::Test {
  protected:
    DaemonTest()
        : system(config), scheduler(dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler())) {
        set_log_level(LogLevel::off);
        model::SmallVocabulary vocabulary = model::SmallVocabulary::usual();
        settings.text.tokenizer = vocabulary.tokenizer();
        settings.version = "test";
        settings.limits.n_ctx = 512;
        settings.limits.max_tokens = 64;
        settings.limits.queue = 8;
        settings.engine.n_slots = 4;
        settings.engine.is_die_detached = false;
        end = settings.text.tokenizer->end_of_generation().front();
    }

    ~DaemonTest() override {
        wiring.reset();
        if (root) {
            caf::anon_send(root, Shutdown{});
            run();
        }
        set_log_level(LogLevel::info);
    }

    void start() {
        launch();
        run();
    }

    void launch() {
        settings.engine.make_executor = [control = control, s = settings,
                                         end = end]() -> Result<std::unique_ptr<model::Executor>> {
            if (control->fail_create) return Error(Code::unavailable, "injected: no device");
            // A context that slides has no end.
            const int n_ctx = s.limits.slides ? std::numeric_limits<int>::max() : s.limits.n_ctx;
            return make_fake_executor(control, s.engine.n_slots, n_ctx, s.text.tokenizer->n_vocab(), end);
        };
        SupervisorEvents events = more_events;
        events.on_ready = [this] { is_ready = true; };
        events.on_failed = [this](const Error& error) { failure = error; };
        events.on_stopped = [this] { is_stopped = true; };
        events.on_wiring = [this](const WiringPtr& next) { wiring = next; };
        root = system.spawn(supervisor, std::make_shared<const DaemonSettings>(settings),
                            std::static_pointer_cast<ClientPort>(port), events);
    }

    void run() { scheduler.run(); }

    /// Runs job by job until the condition holds.
    template <class Condition>
    void run_until(Condition condition) {
        while (!condition()) ASSERT_TRUE(scheduler.try_run_once()) << "idle before the condition held";
    }

    /// Lets virtual time pass and runs what is due.
    void pass(std::chrono::milliseconds duration) {
        scheduler.clock().current_time += duration;
        scheduler.clock().trigger_timeouts();
        run();
    }

    void deliver(const RoutingId& client, const RequestId& id, Request request, std::uint32_t uid = 1000) {
        port->deliver(Inbound{client, Identity{uid, 1, ""}, id, std::move(request), nullptr});
    }

    static GenerateRequest greedy(std::vector<TokenId> prompt, std::int64_t max_tokens = 40) {
        GenerateRequest request;
        request.input = std::move(prompt);
        request.max_tokens = max_tokens;
        request.sampling.temperature = 0.0;
        return request;
    }

    template <class T>
    std::vector<T> events(const RoutingId& client, const RequestId& id) const {
        return port->events<T>(client, id);
    }

    std::vector<TokenId> streamed(const RoutingId& client, const RequestId& id) const {
        std::vector<TokenId> tokens;
        for (const TokenEvent& event : events<TokenEvent>(client, id))
            if (event.token) tokens.push_back(*event.token);
        return tokens;
    }

    /// Of the engine, as the scheduler has it.
    SnapshotPtr snapshot() {
        SnapshotPtr result;
        caf::scoped_actor self{system};
        auto request = self->request(wiring->scheduler, caf::infinite, GetSnapshot{});
        run();
        request.receive([&](const SnapshotPtr& s) { result = s; }, [](const caf::error&) {});
        return result;
    }

    /// The reply of the fake device without its end token, which has no event.
    std::vector<TokenId> expected(const std::vector<TokenId>& prompt, std::int64_t max_tokens = 40) const {
        std::vector<TokenId> reply = fake_reply(prompt, max_tokens, end);
        if (!reply.empty() && reply.back() == end) reply.pop_back();
        return reply;
    }

    /// A prompt whose reply goes on for at least n tokens.
    std::vector<TokenId> long_talker(TokenId first, std::size_t n = 40) const {
        for (TokenId second = 'a';; ++second) {
            std::vector<TokenId> prompt{first, second, 'x'};
            if (expected(prompt, static_cast<std::int64_t>(n)).size() == n) return prompt;
        }
    }

    template <class Handle>
    void kill(const Handle& actor) {
        caf::anon_send_exit(actor, caf::exit_reason::kill);
    }

    TestConfig config;
    caf::actor_system system;
    caf::scheduler::test_coordinator& scheduler;
    std::shared_ptr<FakePort> port = std::make_shared<FakePort>();
    std::shared_ptr<FakeDeviceControl> control = std::make_shared<FakeDeviceControl>();
    DaemonSettings settings;
    SupervisorEvents more_events;  // besides those that start() sets
    SupervisorActor root;
    WiringPtr wiring;  // as published last
    TokenId end = -1;
    bool is_ready = false;
    bool is_stopped = false;
    std::optional<Error> failure;
};

}  // namespace pantheon::actors

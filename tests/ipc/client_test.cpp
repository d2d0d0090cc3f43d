// The client library against a RouterLoop with small sinks behind it, and against nothing.
#include "ipc/client.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "tests/ipc/router_fixture.h"

namespace pantheon::ipc {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class ClientTest : public RouterFixture {
  protected:
    Result<Client> connect(const std::string& endpoint, std::chrono::milliseconds patience = 5s) {
        ClientOptions options;
        options.endpoint = endpoint;
        options.reach_timeout = patience;
        return Client::connect(options);
    }
};

/// Answers pings; everything else goes to `rest`.
template <class F>
std::function<void(PortEvent)> daemon_of(RouterLoop& loop, F rest) {
    return [&loop, rest](PortEvent event) mutable {
        auto* in = std::get_if<Inbound>(&event);
        if (in == nullptr) return;
        if (std::holds_alternative<PingRequest>(in->request))
            loop.send(in->client, in->id, result_of("{}"));
        else
            rest(std::move(*in));
    };
}

TEST_F(ClientTest, CallsAndGetsResultsOrRefusals) {
    auto loop = start();
    loop->set_sink(daemon_of(*loop, [&](Inbound in) {
        if (std::holds_alternative<StatusRequest>(in.request))
            loop->send(in.client, in.id, result_of(R"({"state":"ready"})"));
        else
            loop->send(in.client, in.id,
                       ErrorEvent{Error(Code::permission_denied, "admins only"), std::nullopt});
    }));
    auto client = connect(loop->endpoint());
    ASSERT_TRUE(client) << client.error().to_string();
    EXPECT_EQ(client->endpoint(), loop->endpoint());
    auto status = client->call(StatusRequest{}, 5s);
    ASSERT_TRUE(status);
    EXPECT_EQ(std::get<ResultEvent>(*status).value["state"], "ready");
    auto drain = client->call(DrainRequest{}, 5s);
    ASSERT_TRUE(drain) << "a refusal is an answer";
    EXPECT_EQ(std::get<ErrorEvent>(*drain).error.code(), Code::permission_denied);
    EXPECT_EQ(client->call(GenerateRequest{}, 5s).error().code(), Code::invalid_argument);
}

TEST_F(ClientTest, StreamsOneGeneration) {
    auto loop = start();
    loop->set_sink(daemon_of(*loop, [&](Inbound in) {
        loop->send(in.client, in.id, AcceptedEvent{0, 1, 2});
        loop->send(in.client, in.id, token_event(0, "a"));
        loop->send(in.client, in.id, token_event(1, "b"));
        DoneEvent done;
        done.finish = "stop";
        done.text = "ab";
        loop->send(in.client, in.id, done);
    }));
    auto client = connect(loop->endpoint());
    ASSERT_TRUE(client);
    for (int turn = 0; turn < 2; ++turn) {
        std::string text;
        int n_events = 0;
        auto last = client->generate(prompt_request(), [&](const Event& event) {
            ++n_events;
            if (const auto* token = std::get_if<TokenEvent>(&event)) text += token->text;
        });
        ASSERT_TRUE(last);
        EXPECT_EQ(std::get<DoneEvent>(*last).text, "ab");
        EXPECT_EQ(text, "ab");
        EXPECT_EQ(n_events, 4) << "accepted, two tokens, done";
    }
}

TEST_F(ClientTest, TakesAWholeReplyWhileItsCallerIsBusy) {
    constexpr std::uint64_t kTokens = 3'000;
    RouterConfig c = config();
    c.max_unread = 100'000;
    auto loop = start(c);
    loop->set_sink(daemon_of(*loop, [&](Inbound in) {
        for (std::uint64_t i = 0; i < kTokens; ++i)
            loop->send(in.client, in.id, token_event(static_cast<std::int64_t>(i), std::string(16'384, 'x')));
        loop->send(in.client, in.id, DoneEvent{});
    }));
    auto client = connect(loop->endpoint());
    ASSERT_TRUE(client);
    constexpr std::uint64_t kAll = kTokens + 2;  // the answer to the ping and `done` too
    std::uint64_t n_events = 0;
    const auto last = client->generate(prompt_request(), [&](const Event&) {
        if (n_events++ > 0) return;
        const auto end = std::chrono::steady_clock::now() + 20s;
        while (loop->counts().n_sent < kAll && std::chrono::steady_clock::now() < end)
            std::this_thread::sleep_for(1ms);
        EXPECT_EQ(loop->counts().n_sent, kAll) << "all of it is here, and only one event was taken";
    });
    ASSERT_TRUE(last) << last.error().to_string();
    EXPECT_EQ(n_events, kTokens + 1);
}

TEST_F(ClientTest, CancelsWhenTheFlagIsSet) {
    auto loop = start();
    std::optional<Inbound> running;
    loop->set_sink(daemon_of(*loop, [&](Inbound in) {
        if (std::holds_alternative<GenerateRequest>(in.request)) {
            loop->send(in.client, in.id, AcceptedEvent{});
            running = std::move(in);
            return;
        }
        ASSERT_TRUE(running);
        EXPECT_EQ(std::get<CancelRequest>(in.request).target, running->id);
        loop->send(in.client, in.id, result_of(R"({"cancelled":true})"));
        DoneEvent done;
        done.finish = "cancelled";
        loop->send(running->client, running->id, done);
    }));
    auto client = connect(loop->endpoint());
    ASSERT_TRUE(client);
    std::atomic<bool> cancel{false};
    auto last = client->generate(
        prompt_request(), [&](const Event&) { cancel = true; }, &cancel);
    ASSERT_TRUE(last) << last.error().to_string();
    EXPECT_EQ(std::get<DoneEvent>(*last).finish, "cancelled");
}

TEST_F(ClientTest, SeesADaemonThatDiesInTheMiddleOfAStream) {
    auto loop = start();
    // The sink runs while the pointer is reset, so it does not go through it.
    loop->set_sink(
        daemon_of(*loop, [&raw = *loop](Inbound in) { raw.send(in.client, in.id, AcceptedEvent{}); }));
    auto client = connect(loop->endpoint());
    ASSERT_TRUE(client);
    std::thread killer;
    auto last = client->generate(prompt_request(),
                                 [&](const Event&) { killer = std::thread([&] { loop.reset(); }); });
    killer.join();
    ASSERT_FALSE(last);
    EXPECT_EQ(last.error().code(), Code::unavailable);
    EXPECT_TRUE(is_unreachable(last.error()));
}

TEST_F(ClientTest, SaysAtOnceWhenNobodyListens) {
    const std::string missing = "ipc://" + dir_.path() + "/none.sock";
    const auto begin = std::chrono::steady_clock::now();
    auto client = connect(missing);
    ASSERT_FALSE(client);
    EXPECT_EQ(client.error().code(), Code::unavailable);
    EXPECT_THAT(client.error().message(), HasSubstr("none.sock"));
    EXPECT_TRUE(is_unreachable(client.error()));
    auto tcp = connect("tcp://127.0.0.1:1");
    ASSERT_FALSE(tcp);
    EXPECT_EQ(tcp.error().code(), Code::unavailable);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 4s) << "long before the patience of 5 s each";
}

TEST_F(ClientTest, GivesUpOnADaemonThatDoesNotAnswer) {
    auto loop = start();
    loop->set_sink([](PortEvent) {});
    auto client = connect(loop->endpoint(), 100ms);
    ASSERT_FALSE(client);
    EXPECT_EQ(client.error().code(), Code::deadline_exceeded);
}

TEST_F(ClientTest, NamesAnEndpointThatIsNone) {
    for (const char* endpoint : {"http://x", "/run/x.sock", "tcp://", "tcp://127.0.0.1"}) {
        SCOPED_TRACE(endpoint);
        auto client = connect(endpoint);
        ASSERT_FALSE(client);
        EXPECT_EQ(client.error().code(), Code::invalid_argument);
        EXPECT_FALSE(is_unreachable(client.error()));
    }
}

TEST_F(ClientTest, LooksForTheServiceThenInTheUsersRuntimeDirectory) {
    RouterConfig user = config();
    user.endpoint = "ipc://" + dir_.path() + "/pantheond.sock";
    auto loop = start(user);
    loop->set_sink(daemon_of(*loop, [](Inbound) {}));
    const char* before = getenv("XDG_RUNTIME_DIR");
    const std::string saved = before == nullptr ? "" : before;
    setenv("XDG_RUNTIME_DIR", dir_.path().c_str(), 1);
    EXPECT_EQ(default_endpoints(),
              (std::vector<std::string>{"ipc:///run/pantheon/pantheond.sock", user.endpoint}));
    if (access("/run/pantheon/pantheond.sock", F_OK) != 0) {
        auto client = Client::connect();
        ASSERT_TRUE(client) << client.error().to_string();
        EXPECT_EQ(client->endpoint(), user.endpoint);
        loop.reset();
        auto none = Client::connect();
        ASSERT_FALSE(none);
        EXPECT_THAT(none.error().message(), HasSubstr("/run/pantheon/pantheond.sock"));
        EXPECT_THAT(none.error().message(), HasSubstr(dir_.path()));
    }
    before == nullptr ? unsetenv("XDG_RUNTIME_DIR") : setenv("XDG_RUNTIME_DIR", saved.c_str(), 1);
}

TEST_F(ClientTest, SaysWhenTheSocketsModeKeepsUsOut) {
    if (geteuid() == 0) GTEST_SKIP() << "root may use any socket";
    auto loop = start();
    ASSERT_EQ(chmod((dir_.path() + "/s.sock").c_str(), 0), 0);
    auto client = connect(loop->endpoint());
    ASSERT_FALSE(client);
    EXPECT_EQ(client.error().code(), Code::permission_denied);
}

}  // namespace
}  // namespace pantheon::ipc

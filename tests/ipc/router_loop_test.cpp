// The socket's thread against real clients: what reaches the sink, what reaches the clients, and in what
// order.
#include "ipc/router_loop.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <thread>

#include "tests/fuzz/message_mutator.h"
#include "tests/ipc/router_fixture.h"

namespace pantheon::ipc {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

using RouterLoopTest = RouterFixture;

/// A sink that answers every request at once with `{}`.
std::function<void(PortEvent)> answer_all(RouterLoop& loop, std::size_t n_bytes = 0) {
    return [&loop, n_bytes](PortEvent event) {
        if (auto* in = std::get_if<Inbound>(&event))
            loop.send(in->client, in->id, ResultEvent{Json{{"text", std::string(n_bytes, 'x')}}});
    };
}

/// Events of 16 KiB: the kernel's buffers hold a dozen, the socket's queue 256.
void send_many(RouterLoop& loop, const Inbound& to, int n) {
    for (int i = 0; i < n; ++i) loop.send(to.client, to.id, token_event(i, std::string(16'384, 'x')));
}

void expect_many(RawClient& client, const RequestId& id, int n) {
    for (int i = 0; i < n; ++i) ASSERT_EQ(client.expect<TokenEvent>(id).i, i);
}

void expect_ping_answered(RawClient& client, const RequestId& id) {
    client.ask(id, PingRequest{});
    (void)client.expect<ResultEvent>(id);
}

TEST_F(RouterLoopTest, CarriesARequestToTheSinkAndItsEventsBack) {
    auto loop = start();
    loop->set_sink(recorder_.sink());
    RawClient client(context_, loop->endpoint());
    client.ask(RequestId("r"), prompt_request());
    const auto in = recorder_.expect<Inbound>();
    EXPECT_EQ(in.id, RequestId("r"));
    EXPECT_EQ(in.who.uid, getuid());
    EXPECT_EQ(in.who.pid, static_cast<std::uint32_t>(getpid()));
    EXPECT_EQ(std::get<std::string>(std::get<GenerateRequest>(in.request).input), "hello");
    loop->send(in.client, in.id, AcceptedEvent{0, 7, 100});
    loop->send(in.client, in.id, token_event(0, "é"));
    loop->send(in.client, in.id, DoneEvent{});
    EXPECT_EQ(client.expect<AcceptedEvent>(in.id).seed, 7u);
    EXPECT_EQ(client.expect<TokenEvent>(in.id).text, "é");
    (void)client.expect<DoneEvent>(in.id);
}

TEST_F(RouterLoopTest, AnswersWhatCannotBeDecodedItself) {
    auto loop = start();
    RawClient client(context_, loop->endpoint());
    client.send("\xc1");
    Reply r = client.reply();
    EXPECT_FALSE(r.id);
    EXPECT_EQ(std::get<ErrorEvent>(r.event).error.code(), Code::invalid_argument);
    client.send(pack_tree(Json::parse(R"({"v":1,"id":"r","op":"ping","x":1})")));
    EXPECT_THAT(client.expect<ErrorEvent>(RequestId("r")).error.message(), HasSubstr("'x'"));
    client.send("a", zmq::send_flags::sndmore);
    client.send("b");
    EXPECT_THAT(std::get<ErrorEvent>(client.reply().event).error.message(), HasSubstr("one frame"));
    EXPECT_EQ(loop->counts().n_refused, 3u);
}

TEST_F(RouterLoopTest, ManyProducersKeepEachClientsOrderAndLoseNothing) {
    constexpr int kClients = 4, kEach = 3'000;
    auto loop = start();
    loop->set_sink(recorder_.sink());
    std::vector<std::unique_ptr<RawClient>> clients;
    std::vector<Inbound> asked;
    for (int c = 0; c < kClients; ++c) {
        clients.push_back(std::make_unique<RawClient>(context_, loop->endpoint()));
        clients[c]->ask(RequestId(std::uint64_t(c)), prompt_request());
        asked.push_back(recorder_.expect<Inbound>());
    }
    std::vector<std::thread> producers;
    for (const Inbound& in : asked)
        producers.emplace_back([&] {
            for (int i = 0; i < kEach; ++i) loop->send(in.client, in.id, token_event(i, std::to_string(i)));
        });
    for (int c = 0; c < kClients; ++c)
        for (int i = 0; i < kEach; ++i) {
            const auto token = clients[c]->expect<TokenEvent>(RequestId(std::uint64_t(c)));
            ASSERT_EQ(token.i, i);
            ASSERT_EQ(token.text, std::to_string(i));
        }
    for (std::thread& producer : producers) producer.join();
}

TEST_F(RouterLoopTest, TellsOfASlowReaderAndLosesNothing) {
    auto loop = start();
    loop->set_sink(recorder_.sink());
    RawClient client(context_, loop->endpoint(), zmq::socket_type::dealer, "", 1);
    client.ask(RequestId("r"), prompt_request());
    const auto in = recorder_.expect<Inbound>();
    send_many(*loop, in, 700);
    const auto stalled = recorder_.expect<ClientBacklog>();
    EXPECT_EQ(stalled.client, in.client);
    EXPECT_TRUE(stalled.is_stalled);
    // Another client is served meanwhile.
    RawClient other(context_, loop->endpoint());
    other.ask(RequestId("o"), PingRequest{});
    const auto ping = recorder_.expect<Inbound>();
    loop->send(ping.client, ping.id, result_of("{}"));
    (void)other.expect<ResultEvent>(RequestId("o"));

    expect_many(client, in.id, 700);
    EXPECT_FALSE(recorder_.expect<ClientBacklog>().is_stalled);
    EXPECT_FALSE(recorder_.next<ClientBacklog>(50ms)) << "told once each";
}

/// A socket whose queue is full reads nothing more, probes neither.
TEST_F(RouterLoopTest, AClientThatDoesNotReadForLongIsNotTakenForGone) {
    RouterConfig c = config();
    c.heartbeat_timeout = 90ms;
    auto loop = start(c);
    loop->set_sink(recorder_.sink());
    RawClient client(context_, loop->endpoint(), zmq::socket_type::dealer, "", 1);
    client.ask(RequestId("r"), prompt_request());
    const auto in = recorder_.expect<Inbound>();
    send_many(*loop, in, 700);
    EXPECT_FALSE(recorder_.next<ClientGone>(500ms));
    expect_many(client, in.id, 700);
}

TEST_F(RouterLoopTest, SeesThatAnIdleClientLeft) {
    auto loop = start();
    loop->set_sink(recorder_.sink());
    auto client = std::make_unique<RawClient>(context_, loop->endpoint());
    client->ask(RequestId("r"), prompt_request());
    const auto in = recorder_.expect<Inbound>();
    client.reset();
    EXPECT_EQ(recorder_.expect<ClientGone>().client, in.client);
    loop->send(in.client, in.id, token_event(0));  // nobody's any more
    EXPECT_FALSE(recorder_.next<ClientGone>(50ms)) << "told once";
    EXPECT_EQ(loop->counts().n_clients, 0u);
    EXPECT_EQ(loop->counts().n_discarded, 1u);
}

TEST_F(RouterLoopTest, DropsTheQueueOfAClientThatLeft) {
    auto loop = start();
    loop->set_sink(recorder_.sink());
    auto client = std::make_unique<RawClient>(context_, loop->endpoint(), zmq::socket_type::dealer, "", 1);
    client->ask(RequestId("r"), prompt_request());
    const auto in = recorder_.expect<Inbound>();
    send_many(*loop, in, 600);
    EXPECT_TRUE(recorder_.expect<ClientBacklog>().is_stalled);
    client.reset();
    EXPECT_EQ(recorder_.expect<ClientGone>().client, in.client);
    EXPECT_GT(loop->counts().n_discarded, 0u);
}

TEST_F(RouterLoopTest, ClientsThatReturnUnderTheirIdentityAreNew) {
    auto loop = start();
    loop->set_sink(recorder_.sink());
    auto first = std::make_unique<RawClient>(context_, loop->endpoint(), zmq::socket_type::dealer, "me");
    first->ask(RequestId("a"), prompt_request());
    const auto old_request = recorder_.expect<Inbound>();
    first.reset();
    EXPECT_EQ(recorder_.expect<ClientGone>().client, old_request.client);
    RawClient second(context_, loop->endpoint(), zmq::socket_type::dealer, "me");
    second.ask(RequestId("a"), prompt_request());
    const auto new_request = recorder_.expect<Inbound>();
    EXPECT_NE(new_request.client, old_request.client);
    loop->send(old_request.client, old_request.id, token_event(99));
    loop->send(new_request.client, new_request.id, token_event(0));
    EXPECT_EQ(second.expect<TokenEvent>(RequestId("a")).i, 0) << "the old stream's token must not come";
}

TEST_F(RouterLoopTest, AStrangerCannotTakeALivingClientsIdentity) {
    auto loop = start();
    loop->set_sink(answer_all(*loop));
    RawClient first(context_, loop->endpoint(), zmq::socket_type::dealer, "me");
    expect_ping_answered(first, RequestId("1"));
    RawClient second(context_, loop->endpoint(), zmq::socket_type::dealer, "me");
    second.set_patience(100ms);
    second.ask(RequestId("2"), PingRequest{});
    EXPECT_FALSE(second.frame());
    expect_ping_answered(first, RequestId("3"));
}

TEST_F(RouterLoopTest, CutsOffAClientThatOnlyAsks) {
    auto loop = start();
    loop->set_sink(answer_all(*loop, 2'000));
    RawClient flooder(context_, loop->endpoint(), zmq::socket_type::dealer, "", 1);
    RawClient other(context_, loop->endpoint());
    const std::string ping = encode_request(RequestId("f"), PingRequest{}).value();
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (loop->counts().n_cut == 0) {
        ASSERT_LT(std::chrono::steady_clock::now(), deadline);
        for (int i = 0; i < 500; ++i) flooder.send(ping);
        expect_ping_answered(other, RequestId("o"));
    }
    // What was in the queues comes, then the notice. What the socket still held of the flood may have it cut
    // off again; once that is read too, all is as with a new client.
    for (;;) {
        const Reply r = flooder.reply();
        if (r.id) continue;
        EXPECT_EQ(std::get<ErrorEvent>(r.event).error.code(), Code::resource_exhausted);
        break;
    }
    flooder.set_patience(100ms);
    while (flooder.frame()) {
    }
    flooder.set_patience(kPatience);
    expect_ping_answered(flooder, RequestId("again"));
}

TEST_F(RouterLoopTest, ReadsNoFurtherWhileTooManyRequestsWait) {
    constexpr std::uint64_t kSent = 6'000;
    auto loop = start();
    loop->set_sink(recorder_.sink(/*takes_up_at_once=*/false));
    RawClient client(context_, loop->endpoint());
    for (std::uint64_t i = 0; i < kSent; ++i) client.ask(RequestId(i), PingRequest{});
    std::uint64_t n_seen = 0;
    while (n_seen < loop->counts().n_received || n_seen == 0) {
        n_seen = loop->counts().n_received;
        std::this_thread::sleep_for(100ms);
    }
    EXPECT_LT(n_seen, 2'000u);
    // Taken up one by one, in order, all of them come.
    for (std::uint64_t i = 0; i < kSent; ++i) ASSERT_EQ(recorder_.expect<Inbound>().id, RequestId(i));
    EXPECT_EQ(loop->counts().n_received, kSent);
}

TEST_F(RouterLoopTest, GivesAReqClientExactlyOneReply) {
    auto loop = start();
    loop->set_sink(recorder_.sink());
    RawClient client(context_, loop->endpoint(), zmq::socket_type::req);
    client.ask(RequestId("s"), prompt_request(/*stream=*/true));
    EXPECT_THAT(client.expect<ErrorEvent>(RequestId("s")).error.message(), HasSubstr("stream"));
    client.ask(RequestId("c"), CreditRequest{RequestId("s"), 1});
    EXPECT_THAT(client.expect<ErrorEvent>(RequestId("c")).error.message(), HasSubstr("credit"));
    for (const char* id : {"r1", "r2"}) {
        client.ask(RequestId(id), prompt_request(/*stream=*/false));
        const auto in = recorder_.expect<Inbound>();
        loop->send(in.client, in.id, AcceptedEvent{});
        loop->send(in.client, in.id, ProgressEvent{"prefill", 1, 2});
        loop->send(in.client, in.id, DoneEvent{});
        (void)client.expect<DoneEvent>(RequestId(id));
    }
}

TEST_F(RouterLoopTest, DisconnectsThePeerOfAnOversizedFrame) {
    auto loop = start();
    loop->set_sink(recorder_.sink());
    RawClient client(context_, loop->endpoint());
    client.ask(RequestId("r"), prompt_request());
    const auto in = recorder_.expect<Inbound>();
    client.send(std::string((4u << 20) + 1, 'x'));
    EXPECT_EQ(recorder_.expect<ClientGone>().client, in.client);
    loop->set_sink(answer_all(*loop));
    RawClient other(context_, loop->endpoint());
    expect_ping_answered(other, RequestId("o"));
}

TEST_F(RouterLoopTest, HoldsRequestsBackUntilThereIsASink) {
    auto loop = start();
    RawClient client(context_, loop->endpoint());
    for (std::uint64_t i = 0; i < 256; ++i) client.ask(RequestId(i), PingRequest{});
    client.ask(RequestId("late"), PingRequest{});
    const auto late = client.expect<ErrorEvent>(RequestId("late"));
    EXPECT_EQ(late.error.code(), Code::unavailable);
    EXPECT_TRUE(late.retry_after_ms);
    loop->set_sink(answer_all(*loop));
    for (std::uint64_t i = 0; i < 256; ++i) (void)client.expect<ResultEvent>(RequestId(i));
    // A gateway that restarts: nothing is lost in between.
    loop->set_sink({});
    client.ask(RequestId("between"), PingRequest{});
    loop->set_sink(answer_all(*loop));
    (void)client.expect<ResultEvent>(RequestId("between"));
}

TEST_F(RouterLoopTest, ForgetsHeldRequestsOfClientsThatLeft) {
    auto loop = start();
    auto client = std::make_unique<RawClient>(context_, loop->endpoint());
    client->ask(RequestId("gone"), PingRequest{});
    client->send("\xc1");
    (void)client->reply();  // so both have arrived
    client.reset();
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (loop->counts().n_clients != 0 && std::chrono::steady_clock::now() < deadline)
        std::this_thread::sleep_for(1ms);
    loop->set_sink(recorder_.sink());
    EXPECT_FALSE(recorder_.next<Inbound>(50ms));
    EXPECT_FALSE(recorder_.next<ClientGone>(10ms)) << "the sink never knew of it";
}

TEST_F(RouterLoopTest, GoesOnServingAfterTenThousandMutatedMessages) {
    auto loop = start();
    loop->set_sink(answer_all(*loop));
    RawClient hostile(context_, loop->endpoint());
    RawClient other(context_, loop->endpoint());
    const auto corpus = fuzz::message_corpus();
    for (std::uint64_t seed = 0; seed < 10'000; ++seed) {
        hostile.send(fuzz::mutated_message(corpus, seed));
        ASSERT_TRUE(hostile.frame()) << "no answer to seed " << seed;
        if (seed % 1'000 == 0) expect_ping_answered(other, RequestId(seed));
    }
    EXPECT_EQ(loop->counts().n_cut, 0u);
    expect_ping_answered(other, RequestId("after"));
}

TEST_F(RouterLoopTest, SleepsWhenNothingHappens) {
    auto loop = start();
    loop->set_sink(answer_all(*loop));
    RawClient client(context_, loop->endpoint());
    expect_ping_answered(client, RequestId("r"));
    std::this_thread::sleep_for(50ms);
    const std::uint64_t n_before = loop->counts().n_wakeups;
    std::this_thread::sleep_for(300ms);
    EXPECT_EQ(loop->counts().n_wakeups, n_before);
}

TEST_F(RouterLoopTest, SendsWhatWaitsBeforeItStops) {
    auto loop = start();
    loop->set_sink(recorder_.sink());
    RawClient client(context_, loop->endpoint());
    client.ask(RequestId("r"), prompt_request());
    const auto in = recorder_.expect<Inbound>();
    for (int i = 0; i < 100; ++i) loop->send(in.client, in.id, token_event(i));
    loop->send(in.client, in.id, DoneEvent{});
    loop.reset();
    for (int i = 0; i < 100; ++i) ASSERT_EQ(client.expect<TokenEvent>(in.id).i, i);
    (void)client.expect<DoneEvent>(in.id);
    EXPECT_FALSE(std::filesystem::exists(dir_.path() + "/s.sock"));
}

TEST_F(RouterLoopTest, StopsInTimeBesideAClientThatNeverReads) {
    auto loop = start();
    loop->set_sink(recorder_.sink());
    RawClient client(context_, loop->endpoint(), zmq::socket_type::dealer, "", 1);
    client.ask(RequestId("r"), prompt_request());
    const auto in = recorder_.expect<Inbound>();
    send_many(*loop, in, 600);
    const auto begin = std::chrono::steady_clock::now();
    loop.reset();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
}

TEST_F(RouterLoopTest, RefusesAPathThatAnotherDaemonServes) {
    auto first = start();
    auto second = RouterLoop::start(config());
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code(), Code::failed_precondition);
    first.reset();
    EXPECT_TRUE(RouterLoop::start(config()));
}

TEST_F(RouterLoopTest, RefusesEndpointsThatBreakARule) {
    const struct {
        const char* endpoint;
        const char* said;
    } kCases[] = {
        {"tcp://*:0", "loopback"},
        {"tcp://0.0.0.0:0", "loopback"},
        {"tcp://[::]:0", "loopback"},
        {"tcp://192.0.2.1:0", "loopback"},
        {"tcp://127.0.0.1", "no port"},
        {"udp://127.0.0.1:1", "neither ipc:// nor tcp://"},
        {"ipc://relative", "absolute"},
        {"ipc://@abstract", "absolute"},
        {"", "neither"},
    };
    for (const auto& c : kCases) {
        SCOPED_TRACE(c.endpoint);
        RouterConfig bad = config();
        bad.endpoint = c.endpoint;
        auto loop = RouterLoop::start(bad);
        ASSERT_FALSE(loop);
        EXPECT_THAT(loop.error().message(), HasSubstr(c.said));
    }
}

TEST_F(RouterLoopTest, GivesLoopbackPeersNoUid) {
    RouterConfig tcp = config();
    tcp.endpoint = "tcp://127.0.0.1:*";
    auto loop = start(tcp);
    loop->set_sink(recorder_.sink());
    RawClient client(context_, loop->endpoint());
    client.ask(RequestId("r"), PingRequest{});
    EXPECT_EQ(recorder_.expect<Inbound>().who.uid, kNoUid);
}

TEST_F(RouterLoopTest, LetsOnlyListedKeysInOverCurve) {
    char server_public[41], server_secret[41], known_public[41], known_secret[41], other_public[41],
        other_secret[41];
    zmq_curve_keypair(server_public, server_secret);
    zmq_curve_keypair(known_public, known_secret);
    zmq_curve_keypair(other_public, other_secret);
    RouterConfig curve = config();
    curve.endpoint = "tcp://127.0.0.1:*";
    curve.curve_secret_key = server_secret;
    EXPECT_FALSE(RouterLoop::start(curve)) << "no client key listed";
    curve.curve_client_keys = {known_public};
    auto loop = start(curve);
    loop->set_sink(recorder_.sink());

    const auto ask_as = [&](const char* public_key, const char* secret_key) {
        auto socket = std::make_unique<zmq::socket_t>(context_, zmq::socket_type::dealer);
        socket->set(zmq::sockopt::linger, 0);
        socket->set(zmq::sockopt::curve_serverkey, server_public);
        socket->set(zmq::sockopt::curve_publickey, public_key);
        socket->set(zmq::sockopt::curve_secretkey, secret_key);
        socket->connect(loop->endpoint());
        socket->send(zmq::buffer(encode_request(RequestId("r"), PingRequest{}).value()),
                     zmq::send_flags::none);
        return socket;
    };
    const auto stranger = ask_as(other_public, other_secret);
    EXPECT_FALSE(recorder_.next<Inbound>(200ms));
    const auto known = ask_as(known_public, known_secret);
    const auto in = recorder_.expect<Inbound>();
    EXPECT_EQ(in.who.curve_key, known_public);
    EXPECT_EQ(in.who.uid, kNoUid);
}

}  // namespace
}  // namespace pantheon::ipc

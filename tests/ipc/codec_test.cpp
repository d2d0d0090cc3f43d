// Both directions of the codec against each other, and the exact maps that clients rely on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "ipc/codec.h"
#include "ipc/event_json.h"
#include "ipc/fields.h"
#include "ipc/msgpack_tree.h"

namespace pantheon::ipc {
namespace {

using testing::HasSubstr;

std::vector<Request> sample_requests() {
    GenerateRequest full;
    full.input = std::vector<TokenId>{1, 2, 248'319};
    full.max_tokens = 3;
    full.stop = {"x"};
    full.sampling.temperature = 0.7;
    full.sampling.top_k = 0;
    full.sampling.top_p = 1.0;
    full.sampling.min_p = 0.0;
    full.sampling.repeat_penalty = 1.1;
    full.sampling.presence_penalty = 0.0;
    full.sampling.frequency_penalty = 0.1;
    full.sampling.seed = UINT64_MAX;
    full.sampling.logit_bias = {{0, -1.5f}};
    full.logprobs = 0;
    full.thinking = true;
    full.thinking_budget = 0;
    full.tools = Json::parse(R"([{"type":"function"}])");
    full.priority = 10;
    full.deadline_ms = 5;
    full.cache = CacheMode::off;
    full.session = "s";
    full.credit = 0;
    GenerateRequest chat;
    chat.input = Json::parse(R"([{"role":"user","content":"é"}])");
    chat.stream = false;
    GenerateRequest raw;
    raw.input = std::string("text");
    return {full,
            chat,
            raw,
            CancelRequest{RequestId("a")},
            CreditRequest{RequestId(std::uint64_t{7}), 5},
            TokenizeRequest{"t", true},
            DetokenizeRequest{{1, 2}, false},
            TemplateRequest{Json::parse("[{}]"), Json::parse("[{}]"), false, false},
            ScoreRequest{{1}, 20},
            StatusRequest{},
            PingRequest{},
            MetricsRequest{},
            ReloadRequest{true},
            DrainRequest{1.5},
            SessionRequest{"sessions", std::nullopt, CacheMode::shared},
            SessionRequest{"session.save", "x", CacheMode::private_}};
}

TEST(CodecTest, DecodeOfEncodeIsIdentityForRequests) {
    for (const Request& request : sample_requests()) {
        SCOPED_TRACE(op_name(request));
        for (const RequestId& id : {RequestId("name"), RequestId(std::uint64_t{42}), RequestId("")}) {
            const auto bytes = encode_request(id, request);
            ASSERT_TRUE(bytes);
            const DecodeOutcome outcome = decode_request(*bytes);
            const auto* refused = std::get_if<RefusedRequest>(&outcome);
            ASSERT_EQ(refused, nullptr) << refused->error.to_string();
            const auto& decoded = std::get<DecodedRequest>(outcome);
            EXPECT_EQ(decoded.id, id);
            EXPECT_EQ(encode_request(decoded.id, decoded.request).value(), *bytes);
        }
    }
}

TEST(CodecTest, RefusesToEncodeARequestNoDaemonAccepts) {
    const auto bytes = encode_request(RequestId("a"), TokenizeRequest{std::string(5u << 20, 'x'), false});
    ASSERT_FALSE(bytes);
    EXPECT_EQ(bytes.error().code(), Code::invalid_argument);
}

DoneEvent sample_done() {
    DoneEvent done;
    done.finish = "stop";
    done.text = "hi";
    done.reasoning = "hm";
    done.tool_calls = {{"f", Json::parse(R"({"b":1,"a":[1.5]})"), false}, {"g", Json::object(), true}};
    done.stop_match = "\n";
    done.usage = {10, 4, 3, 1};
    done.timings = {0.5, 1, 2, 3};
    done.notes = {"kv_q4_0"};
    return done;
}

struct EventCase {
    Event event;
    const char* json;
};

std::vector<EventCase> event_cases() {
    TokenEvent token;
    token.i = 3;
    token.token = 17;
    token.text = "é";
    TokenEvent with_logprobs = token;
    with_logprobs.kind = "reasoning";
    with_logprobs.logprob = -0.5f;
    with_logprobs.top = std::vector<TokenLogprobEntry>{{17, -0.5f}, {2, -1.5f}};
    TokenEvent last;
    last.i = 4;
    last.text = "rest";
    DoneEvent failed;
    failed.finish = "error";
    failed.error = Error(Code::data_loss, "layer 3");
    return {
        {AcceptedEvent{2, UINT64_MAX, 4096},
         R"({"id":"r","ev":"accepted","queue":2,"seed":18446744073709551615,"max_tokens":4096})"},
        {ProgressEvent{"prefill", 512, 2048},
         R"({"id":"r","ev":"progress","phase":"prefill","done":512,"total":2048})"},
        {token, R"({"id":"r","ev":"token","i":3,"token":17,"text":"é","kind":"content"})"},
        {with_logprobs,
         R"({"id":"r","ev":"token","i":3,"token":17,"text":"é","kind":"reasoning","logprob":-0.5,"top":[[17,-0.5],[2,-1.5]]})"},
        {last, R"({"id":"r","ev":"token","i":4,"text":"rest","kind":"content"})"},
        {sample_done(),
         R"({"id":"r","ev":"done","finish":"stop","text":"hi","reasoning":"hm",)"
         R"("tool_calls":[{"name":"f","arguments":{"b":1,"a":[1.5]}},{"name":"g","arguments":{},"incomplete":true}],)"
         R"("stop_match":"\n","usage":{"prompt_tokens":10,"cached_tokens":4,"completion_tokens":3,"reasoning_tokens":1},)"
         R"("timings":{"queue_ms":0.5,"prefill_ms":1.0,"first_token_ms":2.0,"decode_ms":3.0},"notes":["kv_q4_0"]})"},
        {failed,
         R"({"id":"r","ev":"done","finish":"error","text":"","reasoning":"","tool_calls":[],)"
         R"("usage":{"prompt_tokens":0,"cached_tokens":0,"completion_tokens":0,"reasoning_tokens":0},)"
         R"("timings":{"queue_ms":0.0,"prefill_ms":0.0,"first_token_ms":0.0,"decode_ms":0.0},"notes":[],)"
         R"("code":"data_loss","message":"layer 3"})"},
        {ResultEvent{Json::parse(R"({"cancelled":true})")}, R"({"id":"r","ev":"result","cancelled":true})"},
        {ResultEvent{Json::object()}, R"({"id":"r","ev":"result"})"},
        {ErrorEvent{Error(Code::resource_exhausted, "full"), 250},
         R"({"id":"r","ev":"error","code":"resource_exhausted","message":"full","retry_after_ms":250})"},
        {ErrorEvent{Error(Code::not_found, "no"), std::nullopt},
         R"({"id":"r","ev":"error","code":"not_found","message":"no"})"},
    };
}

TEST(CodecTest, EventsHaveExactlyTheFieldsOfTheProtocol) {
    for (const EventCase& c : event_cases()) {
        SCOPED_TRACE(c.json);
        Json tree;
        ASSERT_TRUE(parse_map(encode_event(RequestId("r"), c.event), kReplyLimits, tree));
        EXPECT_EQ(tree.dump(), c.json);
    }
}

TEST(CodecTest, DecodeOfEncodeIsIdentityForReplies) {
    for (const EventCase& c : event_cases()) {
        SCOPED_TRACE(c.json);
        const std::string bytes = encode_event(RequestId("r"), c.event);
        const auto reply = decode_reply(bytes);
        ASSERT_TRUE(reply) << reply.error().to_string();
        EXPECT_EQ(encode_event(reply->id, reply->event), bytes);
    }
}

TEST(CodecTest, CarriesBinaryInResults) {
    ResultEvent result{Json::object()};
    result.value["bytes"] = Json::binary({0x00, 0xff, 0x80});
    result.value["empty"] = Json::binary({});
    const auto reply = decode_reply(encode_event(std::nullopt, result));
    ASSERT_TRUE(reply);
    EXPECT_FALSE(reply->id);
    EXPECT_EQ(std::get<ResultEvent>(reply->event).value, result.value);
}

TEST(CodecTest, AnOlderClientIgnoresNewFields) {
    const auto reply = decode_reply(pack_tree(Json::parse(
        R"({"id":1,"ev":"token","i":0,"token":1,"text":"a","kind":"content","speed":[1,{"x":2}]})")));
    ASSERT_TRUE(reply) << reply.error().to_string();
}

TEST(CodecTest, NamesTheFieldOfABrokenReply) {
    const struct {
        const char* json;
        const char* said;
    } kCases[] = {
        {R"({"ev":"result"})", "without id"},
        {R"({"id":-1,"ev":"result"})", "id is mistyped"},
        {R"({"id":1})", "without ev"},
        {R"({"id":1,"ev":"sing"})", "field ev"},
        {R"({"id":1,"ev":"accepted","queue":0,"seed":0})", "max_tokens"},
        {R"({"id":1,"ev":"token","text":"a","kind":"content"})", "token"},
        {R"({"id":1,"ev":"error","code":"internal"})", "message"},
        {R"({"id":1,"ev":"done"})", "finish"},
    };
    for (const auto& c : kCases) {
        SCOPED_TRACE(c.json);
        const auto reply = decode_reply(pack_tree(Json::parse(c.json)));
        ASSERT_FALSE(reply);
        EXPECT_EQ(reply.error().code(), Code::data_loss);
        EXPECT_THAT(reply.error().message(), HasSubstr(c.said));
    }
}

TEST(CodecTest, PacksTheShortestForms) {
    EXPECT_EQ(pack_tree(Json::parse("[1,-1,200,\"a\",null,true]")),
              "\x96\x01\xff\xcc\xc8\xa1"
              "a\xc0\xc3");
    EXPECT_EQ(pack_tree(Json(1.5)), std::string("\xcb\x3f\xf8\0\0\0\0\0\0", 9));
}

}  // namespace
}  // namespace pantheon::ipc

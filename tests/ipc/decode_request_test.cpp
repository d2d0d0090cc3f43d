// What a daemon makes of the bytes of a client: every operation with all its fields, and every refusal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "ipc/codec.h"
#include "ipc/msgpack_tree.h"

namespace pantheon::ipc {
namespace {

using testing::HasSubstr;

std::string packed(const char* json) {
    return pack_tree(Json::parse(json));
}

/// A request with v, id and op given and `fields` (the inside of a JSON map) besides.
std::string request_bytes(const std::string& op, const std::string& fields) {
    const std::string head = R"({"v":1,"id":"r1","op":")" + op + "\"";
    return packed((head + (fields.empty() ? "" : ",") + fields + "}").c_str());
}

template <class T>
T decoded(const std::string& bytes) {
    DecodeOutcome outcome = decode_request(bytes);
    if (const auto* refused = std::get_if<RefusedRequest>(&outcome)) {
        ADD_FAILURE() << refused->error.to_string();
        return T{};
    }
    Request& request = std::get<DecodedRequest>(outcome).request;
    if (!std::holds_alternative<T>(request)) {
        ADD_FAILURE() << "another operation: " << op_name(request);
        return T{};
    }
    return std::get<T>(std::move(request));
}

RefusedRequest refused(const std::string& bytes) {
    DecodeOutcome outcome = decode_request(bytes);
    if (auto* found = std::get_if<RefusedRequest>(&outcome)) return std::move(*found);
    ADD_FAILURE() << "accepted";
    return {std::nullopt, Error(Code::internal, "")};
}

TEST(DecodeRequestTest, ReadsEveryFieldOfGenerate) {
    const auto r = decoded<GenerateRequest>(request_bytes("generate", R"(
        "messages":[{"role":"user","content":"hé"},{"role":"assistant","content":null,"tool_calls":[{"n":-3,"x":1.5}]}],
        "max_tokens":7,"stream":true,"stop":["a","bc"],"temperature":1,"top_k":5,"top_p":0.5,"min_p":0.25,
        "repeat_penalty":1.25,"presence_penalty":-0.5,"frequency_penalty":0.5,"seed":18446744073709551615,
        "logit_bias":[[3,1.5],[4,-2]],"logprobs":20,"thinking":false,"thinking_budget":9,
        "tools":[{"type":"function","z":1,"a":2}],"priority":-10,"deadline_ms":1000,"cache":"shared","session":"s",
        "credit":64)"));
    const auto& messages = std::get<Json>(r.input);
    EXPECT_EQ(messages[0]["content"], "hé");
    EXPECT_TRUE(messages[1]["content"].is_null());
    EXPECT_TRUE(messages[1]["tool_calls"][0]["n"].is_number_integer());
    EXPECT_TRUE(messages[1]["tool_calls"][0]["x"].is_number_float());
    EXPECT_EQ(r.max_tokens, 7);
    EXPECT_TRUE(r.stream);
    EXPECT_EQ(r.stop, (std::vector<std::string>{"a", "bc"}));
    EXPECT_EQ(r.sampling.temperature, 1.0);
    EXPECT_EQ(r.sampling.top_k, 5);
    EXPECT_EQ(r.sampling.top_p, 0.5);
    EXPECT_EQ(r.sampling.min_p, 0.25);
    EXPECT_EQ(r.sampling.repeat_penalty, 1.25);
    EXPECT_EQ(r.sampling.presence_penalty, -0.5);
    EXPECT_EQ(r.sampling.frequency_penalty, 0.5);
    EXPECT_EQ(r.sampling.seed, UINT64_MAX);
    EXPECT_EQ(r.sampling.logit_bias, (std::vector<std::pair<TokenId, float>>{{3, 1.5f}, {4, -2.0f}}));
    EXPECT_EQ(r.logprobs, 20);
    EXPECT_EQ(r.thinking, false);
    EXPECT_EQ(r.thinking_budget, 9);
    EXPECT_EQ(r.tools[0].dump(), R"({"type":"function","z":1,"a":2})") << "keys keep the client's order";
    EXPECT_EQ(r.priority, -10);
    EXPECT_EQ(r.deadline_ms, 1000);
    EXPECT_EQ(r.cache, CacheMode::shared);
    EXPECT_EQ(r.session, "s");
    EXPECT_EQ(r.credit, 64);
}

TEST(DecodeRequestTest, AbsentFieldsHoldTheirDefaults) {
    const auto r = decoded<GenerateRequest>(request_bytes("generate", R"("prompt":"x")"));
    EXPECT_EQ(std::get<std::string>(r.input), "x");
    EXPECT_TRUE(r.stream);
    EXPECT_FALSE(r.max_tokens || r.logprobs || r.thinking || r.thinking_budget || r.deadline_ms ||
                 r.session || r.credit);
    EXPECT_TRUE(r.tools.is_null());
    EXPECT_EQ(r.priority, 0);
    EXPECT_EQ(r.cache, CacheMode::private_);
    EXPECT_FALSE(decoded<TokenizeRequest>(request_bytes("tokenize", R"("text":"a")")).special);
    EXPECT_TRUE(decoded<DetokenizeRequest>(request_bytes("detokenize", R"("tokens":[])")).special);
    EXPECT_TRUE(
        decoded<TemplateRequest>(request_bytes("template", R"("messages":[{}])")).add_generation_prompt);
    EXPECT_EQ(decoded<ScoreRequest>(request_bytes("score", R"("tokens":[0])")).top, 0);
    EXPECT_FALSE(decoded<ReloadRequest>(request_bytes("reload", "")).dry_run);
    EXPECT_FALSE(decoded<DrainRequest>(request_bytes("drain", "")).timeout_s);
}

TEST(DecodeRequestTest, ReadsTheSmallOperations) {
    EXPECT_EQ(decoded<CancelRequest>(request_bytes("cancel", R"("target":"a")")).target, RequestId("a"));
    EXPECT_EQ(decoded<CancelRequest>(request_bytes("cancel", R"("target":9)")).target,
              RequestId(std::uint64_t{9}));
    const auto credit = decoded<CreditRequest>(request_bytes("credit", R"("target":9,"n":32)"));
    EXPECT_EQ(credit.n, 32);
    EXPECT_EQ(
        decoded<DetokenizeRequest>(request_bytes("detokenize", R"("tokens":[0,2147483647],"special":false)"))
            .tokens,
        (std::vector<TokenId>{0, 2147483647}));
    EXPECT_EQ(decoded<ScoreRequest>(request_bytes("score", R"("tokens":[1],"top":20)")).top, 20);
    EXPECT_EQ(decoded<DrainRequest>(request_bytes("drain", R"("timeout_s":2.5)")).timeout_s, 2.5);
    EXPECT_TRUE(decoded<ReloadRequest>(request_bytes("reload", R"("dry_run":true)")).dry_run);
    EXPECT_EQ(decoded<SessionRequest>(request_bytes("session.drop", R"("session":"x")")).op, "session.drop");
    (void)decoded<SessionRequest>(request_bytes("sessions", R"("cache":"shared")"));
    (void)decoded<StatusRequest>(request_bytes("status", ""));
    (void)decoded<PingRequest>(request_bytes("ping", ""));
    (void)decoded<MetricsRequest>(request_bytes("metrics", ""));
}

struct Refusal {
    const char* op;
    const char* fields;
    const char* said;  // part of the message
    Code code = Code::invalid_argument;
};

constexpr Refusal kRefusals[] = {
    {"dance", "", "op: unknown operation 'dance'"},
    {"ping", R"("extra":1)", "unknown field 'extra'"},
    {"generate", "", "prompt, tokens, messages: exactly one"},
    {"generate", R"("prompt":"a","tokens":[1])", "exactly one"},
    {"generate", R"("prompt":5)", "prompt: a string is expected, this is an integer"},
    {"generate", R"("tokens":"a")", "tokens: an array of token ids"},
    {"generate", R"("tokens":[])", "tokens: empty"},
    {"generate", R"("tokens":[1,2147483648])", "tokens[1]: 2147483648 is outside"},
    {"generate", R"("tokens":[-1])", "tokens[0]: -1 is outside"},
    {"generate", R"("tokens":[1.0])", "tokens[0]: a token id is expected"},
    {"generate", R"("messages":[])", "messages: empty"},
    {"generate", R"("messages":[{},3])", "messages[1]: a map is expected"},
    {"generate", R"("messages":{})", "messages: an array of maps"},
    {"generate", R"("prompt":"a","max_tokens":0)", "max_tokens: 0 is outside 1"},
    {"generate", R"("prompt":"a","max_tokens":1.5)", "max_tokens: an integer is expected"},
    {"generate", R"("prompt":"a","max_tokens":null)", "max_tokens: an integer is expected, this is nil"},
    {"generate", R"("prompt":"a","max_tokens":18446744073709551615)",
     "max_tokens: 18446744073709551615 is outside"},
    {"generate", R"("prompt":"a","stream":1)", "stream: a boolean is expected"},
    {"generate", R"("prompt":"a","stop":"x")", "stop: an array"},
    {"generate", R"("prompt":"a","stop":[""])", "stop[0]: empty"},
    {"generate", R"("prompt":"a","stop":["a",1])", "stop[1]: a string"},
    {"generate", R"("prompt":"a","stop":["","","","","","","","","","","","","","","","",""])",
     "stop: 17 strings, limit 16"},
    {"generate", R"("prompt":"a","temperature":-0.1)", "temperature: -0.1 is outside"},
    {"generate", R"("prompt":"a","temperature":"hot")", "temperature: a number"},
    {"generate", R"("prompt":"a","top_p":1.01)", "top_p"},
    {"generate", R"("prompt":"a","min_p":-1)", "min_p"},
    {"generate", R"("prompt":"a","top_k":-1)", "top_k"},
    {"generate", R"("prompt":"a","repeat_penalty":0)", "repeat_penalty"},
    {"generate", R"("prompt":"a","presence_penalty":1e9)", "presence_penalty"},
    {"generate", R"("prompt":"a","frequency_penalty":-1e9)", "frequency_penalty"},
    {"generate", R"("prompt":"a","seed":-1)", "seed: an unsigned integer"},
    {"generate", R"("prompt":"a","logit_bias":[[1]])", "logit_bias[0]"},
    {"generate", R"("prompt":"a","logit_bias":[[1,1e39]])", "logit_bias[0]: not a finite 32-bit"},
    {"generate", R"("prompt":"a","logprobs":21)", "logprobs: 21 is outside 0 … 20"},
    {"generate", R"("prompt":"a","logprobs":1,"stream":false)", "logprobs: needs stream = true"},
    {"generate", R"("prompt":"a","priority":11)", "priority: 11 is outside -10 … 10"},
    {"generate", R"("prompt":"a","deadline_ms":0)", "deadline_ms"},
    {"generate", R"("prompt":"a","cache":"mine")", "cache: 'mine' is none of"},
    {"generate", R"("prompt":"a","session":"")", "session: empty"},
    {"generate", R"("prompt":"a","credit":-1)", "credit"},
    {"generate", R"("prompt":"a","tools":{})", "tools: an array of maps"},
    {"generate", R"("prompt":"a","thinking":"no")", "thinking: a boolean"},
    {"generate", R"("prompt":"a","thinking_budget":-1)", "thinking_budget"},
    {"generate", R"("prompt":"a","response_format":{})", "response_format", Code::unimplemented},
    {"generate", R"("prompt":"a","json_schema":{})", "json_schema", Code::unimplemented},
    {"generate", R"("prompt":"a","grammar":"")", "grammar", Code::unimplemented},
    {"cancel", "", "target: missing"},
    {"cancel", R"("target":-1)", "target: a string of at most 128 bytes"},
    {"credit", R"("target":1)", "n: missing"},
    {"credit", R"("target":1,"n":0)", "n: 0 is outside"},
    {"tokenize", "", "text: missing"},
    {"detokenize", "", "tokens: missing"},
    {"template", "", "messages: missing"},
    {"score", R"("tokens":[1],"top":21)", "top: 21 is outside 0 … 20"},
    {"session.load", "", "session: missing"},
    {"drain", R"("timeout_s":-1)", "timeout_s"},
};

TEST(DecodeRequestTest, RefusesWithTheFieldsNameAndTheRequestsId) {
    for (const Refusal& c : kRefusals) {
        SCOPED_TRACE(std::string(c.op) + " {" + c.fields + "}");
        const RefusedRequest r = refused(request_bytes(c.op, c.fields));
        EXPECT_EQ(r.error.code(), c.code);
        EXPECT_THAT(r.error.message(), HasSubstr(c.said));
        EXPECT_EQ(r.id, RequestId("r1"));
    }
}

TEST(DecodeRequestTest, RefusesABrokenEnvelope) {
    const std::string long_id(129, 'x');
    const struct {
        std::string json;
        const char* said;
        bool has_id;
    } kCases[] = {
        {R"({"id":"r1","op":"ping"})", "v: missing", true},
        {R"({"v":2,"id":"r1","op":"ping"})", "v: this daemon speaks version 1", true},
        {R"({"v":"1","id":"r1","op":"ping"})", "v: this daemon", true},
        {R"({"v":1,"op":"ping"})", "id: missing", false},
        {R"({"v":1,"id":-1,"op":"ping"})", "id: a string", false},
        {R"({"v":1,"id":null,"op":"ping"})", "id: a string", false},
        {R"({"v":1,"id":")" + long_id + R"(","op":"ping"})", "id: a string of at most 128 bytes", false},
        {R"({"v":1,"id":"r1"})", "op: missing", true},
        {R"({"v":1,"id":"r1","op":3})", "op: a string is expected", true},
        {R"({})", "id: missing", false},
    };
    for (const auto& c : kCases) {
        SCOPED_TRACE(c.json);
        const RefusedRequest r = refused(packed(c.json.c_str()));
        EXPECT_THAT(r.error.message(), HasSubstr(c.said));
        EXPECT_EQ(r.error.code(), Code::invalid_argument);
        EXPECT_EQ(r.id.has_value(), c.has_id);
    }
}

TEST(DecodeRequestTest, AcceptsIdsUpToTheirLimits) {
    const std::string longest = R"({"v":1,"id":")" + std::string(128, 'x') + R"(","op":"ping"})";
    EXPECT_TRUE(std::holds_alternative<DecodedRequest>(decode_request(packed(longest.c_str()))));
    const auto outcome = decode_request(packed(R"({"v":1,"id":18446744073709551615,"op":"ping"})"));
    EXPECT_EQ(std::get<DecodedRequest>(outcome).id, RequestId(UINT64_MAX));
}

// Raw bytes that a JSON text cannot spell. kHead is {v: 1, id: 7, op: "ping", "x": … } up to x's value.
const std::string kHead = std::string("\x84\xa1v\x01\xa2id\x07\xa2op\xa4ping\xa1x");

TEST(DecodeRequestTest, RefusesWhatIsNotAMapOfTheProtocol) {
    const struct {
        std::string bytes;
        const char* said;
        bool has_id;
    } kCases[] = {
        {"", "an empty message", false},
        {"\xc0", "the message is not a map", false},
        {"\x93\x01\x02\x03", "the message is not a map", false},
        {"\xa3"
         "abc",
         "the message is not a map", false},
        {"\xc1", "not msgpack", false},
        {"\x81", "the message is cut off", false},
        {"\xdf\xff\xff\xff\xff", "a map of 4294967295 entries, limit 64", false},
        {"\x81\x01\x02", "a key is not a string", false},
        {"\x81\x80\x02", "a key is not a string", false},
        {"\x81\xc4\x01k\x02", "binary data", false},
        {kHead + "\x01\x01", "bytes after the end", true},
        {kHead + "\xc1", "not msgpack at byte", true},
        {kHead, "the message is cut off", true},
        {kHead + "\xdd\xff\xff\xff\xff", "x: an array of 4294967295 elements, limit 300000", true},
        {kHead + "\xdb\xff\xff\xff\xff", "the message is cut off", true},
        {kHead + "\xc6\xff\xff\xff\xff", "the message is cut off", true},
        {kHead + "\xc9\xff\xff\xff\xff\x01", "", true},
        {kHead + "\xc4\x01z", "x: binary data", true},
        {kHead + "\xd4\x01z", "x: msgpack extension types", true},
        {kHead + "\xcb\x7f\xf8" + std::string(6, '\0'), "x: not a finite number", true},
        {kHead + "\xca\xff\x80" + std::string(2, '\0'), "x: not a finite number", true},
        {kHead + "\xa2\xc0\x80", "x: not valid UTF-8", true},
        {kHead + "\xa3\xed\xa0\x80", "x: not valid UTF-8", true},
        {kHead + "\x91\x81\xa1k\xa1\xff", "x[0].k: not valid UTF-8", true},
        {kHead + "\x81\xa1\xff\x01", "x: a key is not valid UTF-8", true},
        {kHead + "\x82\xa1k\x01\xa1k\x01", "x.k: given twice", true},
        {"\x85\xa1v\x01\xa2id\x07\xa2op\xa4ping\xa1v\x01\xa1y\x01", "v: given twice", true},
        {"\x84\xa1v\x01\xa2id\x07\xa2id\x08\xa2op\xa4ping", "id: given twice", true},
    };
    for (const auto& c : kCases) {
        SCOPED_TRACE(testing::PrintToString(c.bytes) + " " + c.said);
        const RefusedRequest r = refused(c.bytes);
        EXPECT_EQ(r.error.code(), Code::invalid_argument);
        EXPECT_THAT(r.error.message(), HasSubstr(c.said));
        EXPECT_EQ(r.id.has_value(), c.has_id);
    }
}

TEST(DecodeRequestTest, NamesInvalidUtf8InEveryTextField) {
    const struct {
        const char* op;
        const char* key;
        bool is_list;
    } kCases[] = {{"generate", "prompt", false},
                  {"generate", "stop", true},
                  {"tokenize", "text", false},
                  {"generate", "session", false}};
    for (const auto& c : kCases) {
        SCOPED_TRACE(c.key);
        std::string bytes =
            request_bytes(c.op, std::string("\"") + c.key + "\":" + (c.is_list ? "[\"QQ\"]" : "\"QQ\""));
        bytes.replace(bytes.find("QQ"), 2, "\xf5\x80");
        EXPECT_THAT(refused(bytes).error.message(), HasSubstr(c.key));
        EXPECT_THAT(refused(bytes).error.message(), HasSubstr("not valid UTF-8"));
    }
}

TEST(DecodeRequestTest, FindsTheIdBehindABadValue) {
    const auto with_value = [](std::string value) {  // {"v":1,"op":"tokenize","text":VALUE,"id":"me"}
        return std::string("\x84\xA1v\x01\xA2op\xA8tokenize\xA4text", 21) + std::move(value) + "\xA2id\xA2me";
    };
    const std::string values[] = {std::string("\xC4\x01x", 3), "\xA1\xFF", std::string("\xD4\x01\x00", 3),
                                  std::string("\xCB\x7F\xF8\0\0\0\0\0\0", 9), "\x91\xC4\x01x"};
    for (const std::string& value : values) {
        const RefusedRequest r = refused(with_value(value));
        ASSERT_TRUE(r.id) << r.error.to_string();
        EXPECT_EQ(*r.id, RequestId("me"));
        EXPECT_EQ(r.error.code(), Code::invalid_argument);
    }
    // An id deeper down, or behind real damage, is none.
    EXPECT_FALSE(refused(std::string("\x81\xA1x\x81\xA2id\x05", 8)).id);
    EXPECT_FALSE(refused(with_value("\xC1")).id);
}

TEST(DecodeRequestTest, CountsDepthUpToSixteen) {
    // The message itself is level 1, `tools` level 2, so 14 more may follow.
    const auto nested = [](int n) {
        return request_bytes(
            "generate", R"("prompt":"a","tools":[{"k":)" + std::string(n, '[') + std::string(n, ']') + "}]");
    };
    (void)decoded<GenerateRequest>(nested(13));
    EXPECT_THAT(refused(nested(14)).error.message(), HasSubstr("nested deeper than 16"));
    const std::string bomb = kHead + std::string(1'000'000, '\x91');
    EXPECT_THAT(refused(bomb).error.message(), HasSubstr("nested deeper than 16"));
}

TEST(DecodeRequestTest, CountsElementsNotOnlyBytes) {
    const auto nils = [](std::uint32_t n) {
        std::string bytes = kHead + "\xdd";
        for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(n >> shift));
        return bytes + std::string(n, '\xc0');
    };
    EXPECT_THAT(refused(nils(300'000)).error.message(), HasSubstr("unknown field 'x'"));
    EXPECT_THAT(refused(nils(300'001)).error.message(), HasSubstr("an array of 300001 elements"));
    // Two arrays, each within its own limit.
    const std::string one = nils(250'000).substr(kHead.size());
    EXPECT_THAT(refused(kHead + "\x92" + one + one).error.message(), HasSubstr("more than 400000 values"));
    // Four million empty maps in arrays of 15: small containers add up as well.
    std::string many = kHead + "\xdd" + std::string("\x00\x03\xd0\x90", 4);  // 250,000
    for (int i = 0; i < 250'000; ++i) many += "\x93\x80\x80\x80";
    EXPECT_THAT(refused(many).error.message(), HasSubstr("more than 400000 values"));
}

TEST(DecodeRequestTest, RefusesAFrameOverFourMebibytes) {
    const std::string text(4u << 20, 'a');
    Json map = {{"v", 1}, {"id", "r1"}, {"op", "tokenize"}, {"text", text}};
    EXPECT_THAT(refused(pack_tree(map)).error.message(), HasSubstr("limit 4194304"));
    map["text"] = std::string((4u << 20) - 64, 'a');
    (void)decoded<TokenizeRequest>(pack_tree(map));
}

TEST(DecodeRequestTest, TakesTheLongestTokenListAllowed) {
    Json map = {{"v", 1}, {"id", "r1"}, {"op", "score"}};
    map["tokens"] = std::vector<TokenId>(300'000, 248'319);
    EXPECT_EQ(decoded<ScoreRequest>(pack_tree(map)).tokens.size(), 300'000u);
}

TEST(DecodeRequestTest, ClipsAClientsTextInMessages) {
    const Json map = {{"v", 1}, {"id", "r1"}, {"op", "ping"}, {std::string(100'000, 'k'), 1}};
    const auto r = refused(pack_tree(map));
    EXPECT_LT(r.error.message().size(), 200u);
}

}  // namespace
}  // namespace pantheon::ipc

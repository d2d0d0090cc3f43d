// A Request as a client sends it. Fields that hold their default are left out.
#include <nlohmann/json.hpp>

#include "ipc/codec.h"
#include "ipc/fields.h"
#include "ipc/limits.h"
#include "ipc/msgpack_tree.h"

namespace pantheon::ipc {
namespace {

template <class T>
void put(Json& map, const char* key, const std::optional<T>& value) {
    if (value) map[key] = *value;
}

const char* cache_name(CacheMode mode) {
    switch (mode) {
        case CacheMode::shared:
            return "shared";
        case CacheMode::off:
            return "off";
        case CacheMode::private_:
            break;
    }
    return "private";
}

void put_cache(Json& map, CacheMode mode) {
    if (mode != CacheMode::private_) map["cache"] = cache_name(mode);
}

void put_sampling(Json& map, const SamplingRequest& s) {
    put(map, "temperature", s.temperature);
    put(map, "top_k", s.top_k);
    put(map, "top_p", s.top_p);
    put(map, "min_p", s.min_p);
    put(map, "repeat_penalty", s.repeat_penalty);
    put(map, "presence_penalty", s.presence_penalty);
    put(map, "frequency_penalty", s.frequency_penalty);
    put(map, "seed", s.seed);
    if (s.logit_bias.empty()) return;
    Json& list = map["logit_bias"] = Json::array();
    for (const auto& [token, amount] : s.logit_bias) list.push_back(Json::array({token, amount}));
}

struct FieldWriter {
    Json& map;

    void operator()(const GenerateRequest& r) const {
        if (const auto* prompt = std::get_if<std::string>(&r.input)) map["prompt"] = *prompt;
        if (const auto* tokens = std::get_if<std::vector<TokenId>>(&r.input)) map["tokens"] = *tokens;
        if (const auto* messages = std::get_if<Json>(&r.input)) map["messages"] = *messages;
        put(map, "max_tokens", r.max_tokens);
        if (!r.stream) map["stream"] = false;
        if (!r.stop.empty()) map["stop"] = r.stop;
        put_sampling(map, r.sampling);
        put(map, "logprobs", r.logprobs);
        put(map, "thinking", r.thinking);
        put(map, "thinking_budget", r.thinking_budget);
        if (!r.tools.is_null()) map["tools"] = r.tools;
        if (r.priority != 0) map["priority"] = r.priority;
        put(map, "deadline_ms", r.deadline_ms);
        put_cache(map, r.cache);
        put(map, "session", r.session);
        put(map, "credit", r.credit);
    }
    void operator()(const CancelRequest& r) const { map["target"] = request_id_to_json(r.target); }
    void operator()(const CreditRequest& r) const {
        map["target"] = request_id_to_json(r.target);
        map["n"] = r.n;
    }
    void operator()(const TokenizeRequest& r) const {
        map["text"] = r.text;
        if (r.special) map["special"] = true;
    }
    void operator()(const DetokenizeRequest& r) const {
        map["tokens"] = r.tokens;
        if (!r.special) map["special"] = false;
    }
    void operator()(const TemplateRequest& r) const {
        map["messages"] = r.messages;
        if (!r.tools.is_null()) map["tools"] = r.tools;
        put(map, "thinking", r.thinking);
        if (!r.add_generation_prompt) map["add_generation_prompt"] = false;
    }
    void operator()(const ScoreRequest& r) const {
        map["tokens"] = r.tokens;
        if (r.top != 0) map["top"] = r.top;
    }
    void operator()(const ReloadRequest& r) const {
        if (r.dry_run) map["dry_run"] = true;
    }
    void operator()(const DrainRequest& r) const { put(map, "timeout_s", r.timeout_s); }
    void operator()(const SessionRequest& r) const {
        put(map, "session", r.session);
        put_cache(map, r.cache);
    }
    void operator()(const StatusRequest&) const {}
    void operator()(const PingRequest&) const {}
    void operator()(const MetricsRequest&) const {}
};

struct OpName {
    std::string_view operator()(const GenerateRequest&) const { return "generate"; }
    std::string_view operator()(const CancelRequest&) const { return "cancel"; }
    std::string_view operator()(const CreditRequest&) const { return "credit"; }
    std::string_view operator()(const TokenizeRequest&) const { return "tokenize"; }
    std::string_view operator()(const DetokenizeRequest&) const { return "detokenize"; }
    std::string_view operator()(const TemplateRequest&) const { return "template"; }
    std::string_view operator()(const ScoreRequest&) const { return "score"; }
    std::string_view operator()(const StatusRequest&) const { return "status"; }
    std::string_view operator()(const PingRequest&) const { return "ping"; }
    std::string_view operator()(const MetricsRequest&) const { return "metrics"; }
    std::string_view operator()(const ReloadRequest&) const { return "reload"; }
    std::string_view operator()(const DrainRequest&) const { return "drain"; }
    std::string_view operator()(const SessionRequest& r) const { return r.op; }
};

}  // namespace

std::string_view op_name(const Request& request) {
    return std::visit(OpName{}, request);
}

Result<std::string> encode_request(const RequestId& id, const Request& request) {
    Json map = Json::object();
    map["v"] = kProtocolVersion;
    map["id"] = request_id_to_json(id);
    map["op"] = op_name(request);
    std::visit(FieldWriter{map}, request);
    std::string bytes = pack_tree(map);
    if (bytes.size() > kMaxRequestBytes)
        return Error(Code::invalid_argument, "the request has " + std::to_string(bytes.size()) +
                                                 " bytes, limit " + std::to_string(kMaxRequestBytes));
    return bytes;
}

}  // namespace pantheon::ipc

// Bytes from a client to a Request: which operations exist, which fields each takes, and the range of each.
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "ipc/codec.h"
#include "ipc/fields.h"
#include "ipc/find_id.h"
#include "ipc/limits.h"
#include "ipc/msgpack_tree.h"

namespace pantheon::ipc {
namespace {

constexpr double kMaxFloat = std::numeric_limits<float>::max();

std::optional<CacheMode> cache_mode(Fields& fields) {
    const auto name = fields.text("cache");
    if (!name) return std::nullopt;
    if (*name == "private") return CacheMode::private_;
    if (*name == "shared") return CacheMode::shared;
    if (*name == "off") return CacheMode::off;
    fields.fail("cache", quote_text(*name) + " is none of private, shared, off");
    return std::nullopt;
}

std::vector<std::string> stop_strings(Fields& fields) {
    const Json* value = fields.take("stop");
    if (value == nullptr) return {};
    if (!value->is_array()) {
        fields.fail("stop", "an array of strings is expected");
        return {};
    }
    if (value->size() > kMaxStopStrings) {
        fields.fail("stop",
                    std::to_string(value->size()) + " strings, limit " + std::to_string(kMaxStopStrings));
        return {};
    }
    std::vector<std::string> strings;
    for (const Json& element : *value) {
        const std::string where = "stop[" + std::to_string(strings.size()) + "]";
        if (!element.is_string()) {
            fields.fail(where, "a string is expected");
            return {};
        }
        if (element.get_ref<const std::string&>().empty()) {
            fields.fail(where, "empty");
            return {};
        }
        strings.push_back(element.get<std::string>());
    }
    return strings;
}

std::vector<std::pair<TokenId, float>> logit_bias(Fields& fields) {
    const Json* value = fields.take("logit_bias");
    if (value == nullptr) return {};
    if (!value->is_array()) {
        fields.fail("logit_bias", "an array of [token id, number] is expected");
        return {};
    }
    if (value->size() > kMaxLogitBias) {
        fields.fail("logit_bias",
                    std::to_string(value->size()) + " entries, limit " + std::to_string(kMaxLogitBias));
        return {};
    }
    std::vector<std::pair<TokenId, float>> bias;
    for (const Json& entry : *value) {
        const std::string where = "logit_bias[" + std::to_string(bias.size()) + "]";
        const bool is_pair = entry.is_array() && entry.size() == 2 && entry[1].is_number();
        const auto token = is_pair ? token_from_json(entry[0]) : std::nullopt;
        if (!token) {
            fields.fail(where, "[token id, number] is expected");
            return {};
        }
        const double amount = entry[1].get<double>();
        if (!(std::fabs(amount) <= kMaxFloat)) {
            fields.fail(where, "not a finite 32-bit number");
            return {};
        }
        bias.emplace_back(*token, static_cast<float>(amount));
    }
    return bias;
}

SamplingRequest sampling(Fields& fields) {
    SamplingRequest s;
    s.temperature = fields.number("temperature", 0, 100);
    s.top_k = fields.integer("top_k", 0, kMaxInt32);
    s.top_p = fields.number("top_p", 0, 1);
    s.min_p = fields.number("min_p", 0, 1);
    s.repeat_penalty = fields.number("repeat_penalty", 0, 100);
    if (s.repeat_penalty == 0.0) fields.fail("repeat_penalty", "0 is not above 0");
    s.presence_penalty = fields.number("presence_penalty", -100, 100);
    s.frequency_penalty = fields.number("frequency_penalty", -100, 100);
    s.seed = fields.unsigned_integer("seed");
    s.logit_bias = logit_bias(fields);
    return s;
}

void read_input(Fields& fields, GenerateRequest& request) {
    const int n_given = fields.has("prompt") + fields.has("tokens") + fields.has("messages");
    if (n_given != 1) fields.fail("prompt, tokens, messages", "exactly one of them is expected");
    if (auto prompt = fields.text("prompt")) request.input = std::move(*prompt);
    if (auto tokens = fields.tokens("tokens")) {
        if (tokens->empty()) fields.fail("tokens", "empty");
        request.input = std::move(*tokens);
    }
    if (Json messages = fields.maps("messages"); messages.is_array()) {
        if (messages.empty()) fields.fail("messages", "empty");
        request.input = std::move(messages);
    }
}

Request generate(Fields& fields) {
    for (const std::string_view key : {"response_format", "json_schema", "grammar"})
        if (fields.take(key) != nullptr)
            fields.fail(
                Error(Code::unimplemented, std::string(key) + ": constrained output does not exist yet"));
    GenerateRequest r;
    read_input(fields, r);
    r.max_tokens = fields.integer("max_tokens", 1, kMaxInt32);
    r.stream = fields.boolean("stream").value_or(true);
    r.stop = stop_strings(fields);
    r.sampling = sampling(fields);
    if (const auto n = fields.integer("logprobs", 0, kMaxTopLogprobs)) r.logprobs = static_cast<int>(*n);
    // They travel on `token` events, of which there are none then.
    if (r.logprobs && !r.stream) fields.fail("logprobs", "needs stream = true");
    r.thinking = fields.boolean("thinking");
    r.thinking_budget = fields.integer("thinking_budget", 0, kMaxInt32);
    r.tools = fields.maps("tools");
    r.priority = static_cast<int>(fields.integer("priority", -10, 10).value_or(0));
    r.deadline_ms = fields.integer("deadline_ms", 1, kMaxInt32);
    r.cache = cache_mode(fields).value_or(CacheMode::private_);
    r.session = fields.text("session", kMaxSessionBytes);
    if (r.session && r.session->empty()) fields.fail("session", "empty");
    r.credit = fields.integer("credit", 0, kMaxInt32);
    return r;
}

Request cancel(Fields& fields) {
    fields.require("target");
    return CancelRequest{fields.request_id("target").value_or(RequestId{})};
}

Request credit(Fields& fields) {
    fields.require("target");
    fields.require("n");
    auto target = fields.request_id("target").value_or(RequestId{});
    return CreditRequest{std::move(target), fields.integer("n", 1, kMaxInt32).value_or(0)};
}

Request tokenize(Fields& fields) {
    fields.require("text");
    TokenizeRequest r;
    r.text = fields.text("text").value_or("");
    r.special = fields.boolean("special").value_or(false);
    return r;
}

Request detokenize(Fields& fields) {
    fields.require("tokens");
    DetokenizeRequest r;
    r.tokens = fields.tokens("tokens").value_or(std::vector<TokenId>{});
    r.special = fields.boolean("special").value_or(true);
    return r;
}

Request render_template(Fields& fields) {
    fields.require("messages");
    TemplateRequest r;
    r.messages = fields.maps("messages");
    if (r.messages.is_array() && r.messages.empty()) fields.fail("messages", "empty");
    r.tools = fields.maps("tools");
    r.thinking = fields.boolean("thinking");
    r.add_generation_prompt = fields.boolean("add_generation_prompt").value_or(true);
    return r;
}

Request score(Fields& fields) {
    fields.require("tokens");
    ScoreRequest r;
    r.tokens = fields.tokens("tokens").value_or(std::vector<TokenId>{});
    if (r.tokens.empty()) fields.fail("tokens", "empty");
    r.top = static_cast<int>(fields.integer("top", 0, kMaxTopLogprobs).value_or(0));
    return r;
}

Request drain(Fields& fields) {
    return DrainRequest{fields.number("timeout_s", 0, 86'400)};
}

Request session_op(Fields& fields, std::string_view op) {
    SessionRequest r;
    r.op = op;
    if (op != "sessions") fields.require("session");
    r.session = fields.text("session", kMaxSessionBytes);
    if (r.session && r.session->empty()) fields.fail("session", "empty");
    r.cache = cache_mode(fields).value_or(CacheMode::private_);
    return r;
}

std::optional<Request> request_of(std::string_view op, Fields& fields) {
    if (op == "generate") return generate(fields);
    if (op == "cancel") return cancel(fields);
    if (op == "credit") return credit(fields);
    if (op == "tokenize") return tokenize(fields);
    if (op == "detokenize") return detokenize(fields);
    if (op == "template") return render_template(fields);
    if (op == "score") return score(fields);
    if (op == "status") return StatusRequest{};
    if (op == "ping") return PingRequest{};
    if (op == "metrics") return MetricsRequest{};
    if (op == "reload") return ReloadRequest{fields.boolean("dry_run").value_or(false)};
    if (op == "drain") return drain(fields);
    if (op == "sessions" || op == "session.drop" || op == "session.save" || op == "session.load")
        return session_op(fields, op);
    return std::nullopt;
}

/// The checks that come before an operation is known: id, version, op.
Result<Request> read_request(const Json& map) {
    Fields fields(map, {"v", "id", "op"});
    fields.require("id");
    (void)fields.request_id("id");
    fields.require("v");
    if (const Json* v = fields.take("v"); v != nullptr && *v != kProtocolVersion)
        fields.fail("v", "this daemon speaks version " + std::to_string(kProtocolVersion));
    fields.require("op");
    const auto op = fields.text("op");
    // Without these three the rest has no meaning, so an unknown field elsewhere is not the news.
    std::optional<Request> request;
    if (op) {
        request = request_of(*op, fields);
        if (!request) fields.fail("op", "unknown operation " + quote_text(*op));
    }
    if (auto status = fields.finish(); !status) return std::move(status).error();
    return std::move(*request);
}

std::optional<RequestId> id_in(const Json& root) {
    if (!root.is_object()) return std::nullopt;
    const auto at = root.find("id");
    return at == root.end() ? std::nullopt : request_id_from_json(*at);
}

}  // namespace

DecodeOutcome decode_request(std::string_view frame) noexcept {
    try {
        Json root;
        if (auto status = parse_map(frame, kRequestLimits, root); !status) {
            // Parsing ended at the bad value; the id may stand behind it.
            auto id = id_in(root);
            return RefusedRequest{id ? id : find_id(frame), std::move(status).error()};
        }
        Result<Request> request = read_request(root);
        if (!request) return RefusedRequest{id_in(root), std::move(request).error()};
        return DecodedRequest{*id_in(root), std::move(request).value()};
    } catch (...) {
        // Only memory can run out here. The text fits a string's own buffer, so that building it cannot
        // throw.
        return RefusedRequest{std::nullopt, Error(Code::resource_exhausted, "out of memory")};
    }
}

}  // namespace pantheon::ipc

#include "ipc/event_json.h"

#include <nlohmann/json.hpp>

#include "ipc/fields.h"

namespace pantheon::ipc {
namespace {

// ---- to a map
// -------------------------------------------------------------------------------------------------

Json token_fields(const TokenEvent& e) {
    Json map = {{"i", e.i}};
    if (e.token) map["token"] = *e.token;
    map["text"] = e.text;
    map["kind"] = e.kind;
    if (e.logprob) map["logprob"] = *e.logprob;
    if (e.top) {
        Json& top = map["top"] = Json::array();
        for (const TokenLogprobEntry& entry : *e.top)
            top.push_back(Json::array({entry.token, entry.logprob}));
    }
    return map;
}

Json tool_call_list(const std::vector<ToolCallEntry>& calls) {
    Json list = Json::array();
    for (const ToolCallEntry& call : calls) {
        Json map = {{"name", call.name}, {"arguments", call.arguments}};
        if (call.is_incomplete) map["incomplete"] = true;
        list.push_back(std::move(map));
    }
    return list;
}

void put_error(Json& map, const Error& error) {
    map["code"] = code_name(error.code());
    map["message"] = error.message();
}

Json done_fields(const DoneEvent& e) {
    Json map = {{"finish", e.finish}, {"text", e.text}, {"reasoning", e.reasoning}};
    map["tool_calls"] = tool_call_list(e.tool_calls);
    if (e.stop_match) map["stop_match"] = *e.stop_match;
    map["usage"] = {{"prompt_tokens", e.usage.prompt_tokens},
                    {"cached_tokens", e.usage.cached_tokens},
                    {"completion_tokens", e.usage.completion_tokens},
                    {"reasoning_tokens", e.usage.reasoning_tokens}};
    map["timings"] = {{"queue_ms", e.timings.queue_ms},
                      {"prefill_ms", e.timings.prefill_ms},
                      {"first_token_ms", e.timings.first_token_ms},
                      {"decode_ms", e.timings.decode_ms}};
    map["notes"] = e.notes;
    if (e.error) put_error(map, *e.error);
    return map;
}

struct ToMap {
    Json operator()(const AcceptedEvent& e) const {
        return {{"queue", e.queue}, {"seed", e.seed}, {"max_tokens", e.max_tokens}};
    }
    Json operator()(const ProgressEvent& e) const {
        return {{"phase", e.phase}, {"done", e.done}, {"total", e.total}};
    }
    Json operator()(const TokenEvent& e) const { return token_fields(e); }
    Json operator()(const DoneEvent& e) const { return done_fields(e); }
    Json operator()(const ResultEvent& e) const { return e.value.is_object() ? e.value : Json::object(); }
    Json operator()(const ErrorEvent& e) const {
        Json map = Json::object();
        put_error(map, e.error);
        if (e.retry_after_ms) map["retry_after_ms"] = *e.retry_after_ms;
        return map;
    }
};

struct NameOf {
    const char* operator()(const AcceptedEvent&) const { return "accepted"; }
    const char* operator()(const ProgressEvent&) const { return "progress"; }
    const char* operator()(const TokenEvent&) const { return "token"; }
    const char* operator()(const DoneEvent&) const { return "done"; }
    const char* operator()(const ResultEvent&) const { return "result"; }
    const char* operator()(const ErrorEvent&) const { return "error"; }
};

// ---- from a map
// -----------------------------------------------------------------------------------------------

/// Reads fields of a reply; a missing or mistyped one is kept as the failure of the whole.
class ReplyReader {
  public:
    explicit ReplyReader(const Json& map) : map_(map) {}

    const Json* find(const char* key) const {
        const auto at = map_.find(key);
        return at == map_.end() ? nullptr : &*at;
    }
    std::string text(const char* key) {
        const Json* v = find(key);
        return check(v != nullptr && v->is_string(), key) ? v->get<std::string>() : std::string();
    }
    std::int64_t integer(const char* key) {
        const Json* v = find(key);
        return check(v != nullptr && v->is_number_integer(), key) ? v->get<std::int64_t>() : 0;
    }
    std::uint64_t unsigned_integer(const char* key) {
        const Json* v = find(key);
        return check(v != nullptr && v->is_number_unsigned(), key) ? v->get<std::uint64_t>() : 0;
    }
    double number(const char* key) {
        const Json* v = find(key);
        return check(v != nullptr && v->is_number(), key) ? v->get<double>() : 0;
    }
    const Json& child(const char* key, Json::value_t type) {
        static const Json kNothing = Json::object();
        const Json* v = find(key);
        return check(v != nullptr && v->type() == type, key) ? *v : kNothing;
    }
    bool check(bool is_fine, const char* key) {
        if (!is_fine && !failed_) failed_ = key;
        return is_fine;
    }
    const std::optional<std::string>& failed() const { return failed_; }

  private:
    const Json& map_;
    std::optional<std::string> failed_;
};

std::optional<TokenEvent> token_event(const Json& map) {
    if (!map.is_object()) return std::nullopt;
    ReplyReader r(map);
    TokenEvent e;
    e.i = r.integer("i");
    if (const Json* id = r.find("token")) {
        e.token = token_from_json(*id);
        r.check(e.token.has_value(), "token");
    }
    e.text = r.text("text");
    e.kind = r.text("kind");
    if (r.find("logprob") != nullptr) e.logprob = static_cast<float>(r.number("logprob"));
    if (r.find("top") != nullptr) {
        e.top.emplace();
        for (const Json& entry : r.child("top", Json::value_t::array)) {
            const bool is_pair = entry.is_array() && entry.size() == 2 && entry[1].is_number();
            const auto token = is_pair ? token_from_json(entry[0]) : std::nullopt;
            if (!r.check(token.has_value(), "top")) break;
            e.top->push_back({*token, entry[1].get<float>()});
        }
    }
    if (r.failed()) return std::nullopt;
    return e;
}

std::optional<Error> error_in(ReplyReader& r) {
    const std::string code = r.text("code");
    return Error(code_from_name(code).value_or(Code::internal), r.text("message"));
}

DoneEvent done_event(ReplyReader& r) {
    DoneEvent e;
    e.finish = r.text("finish");
    e.text = r.text("text");
    e.reasoning = r.text("reasoning");
    for (const Json& call : r.child("tool_calls", Json::value_t::array)) {
        if (!r.check(call.is_object(), "tool_calls")) break;
        ReplyReader c(call);
        const Json* arguments = c.find("arguments");
        const Json* incomplete = c.find("incomplete");
        e.tool_calls.push_back({c.text("name"), arguments != nullptr ? *arguments : Json(),
                                incomplete != nullptr && *incomplete == true});
        r.check(!c.failed(), "tool_calls");
    }
    if (r.find("stop_match") != nullptr) e.stop_match = r.text("stop_match");
    ReplyReader usage(r.child("usage", Json::value_t::object));
    e.usage = {usage.integer("prompt_tokens"), usage.integer("cached_tokens"),
               usage.integer("completion_tokens"), usage.integer("reasoning_tokens")};
    r.check(!usage.failed(), "usage");
    ReplyReader timings(r.child("timings", Json::value_t::object));
    e.timings = {timings.number("queue_ms"), timings.number("prefill_ms"), timings.number("first_token_ms"),
                 timings.number("decode_ms")};
    r.check(!timings.failed(), "timings");
    for (const Json& note : r.child("notes", Json::value_t::array))
        if (r.check(note.is_string(), "notes")) e.notes.push_back(note.get<std::string>());
    if (r.find("code") != nullptr) e.error = error_in(r);
    return e;
}

Json without_envelope(const Json& map) {
    Json rest = Json::object();
    for (const auto& [key, value] : map.get_ref<const Json::object_t&>())
        if (key != "id" && key != "ev") rest[key] = value;
    return rest;
}

std::optional<Event> event_of(std::string_view name, const Json& fields, ReplyReader& r) {
    if (name == "token") {
        auto token = token_event(fields);
        if (!r.check(token.has_value(), "token")) return std::nullopt;
        return Event(std::move(*token));
    }
    if (name == "accepted") {
        const std::int64_t queue = r.integer("queue");
        const std::uint64_t seed = r.unsigned_integer("seed");
        return Event(AcceptedEvent{queue, seed, r.integer("max_tokens")});
    }
    if (name == "progress") {
        std::string phase = r.text("phase");
        const std::int64_t done = r.integer("done");
        return Event(ProgressEvent{std::move(phase), done, r.integer("total")});
    }
    if (name == "done") return Event(done_event(r));
    if (name == "result") return Event(ResultEvent{without_envelope(fields)});
    if (name == "error") {
        ErrorEvent e{*error_in(r), std::nullopt};
        if (r.find("retry_after_ms") != nullptr) e.retry_after_ms = r.integer("retry_after_ms");
        return Event(std::move(e));
    }
    r.check(false, "ev");
    return std::nullopt;
}

}  // namespace

Json event_to_json(const Event& event) {
    return std::visit(ToMap{}, event);
}

const char* event_name(const Event& event) {
    return std::visit(NameOf{}, event);
}

Result<Event> event_from_json(std::string_view name, const Json& fields) {
    if (!fields.is_object()) return Error(Code::data_loss, "a reply that is not a map");
    ReplyReader reader(fields);
    std::optional<Event> event = event_of(name, fields, reader);
    if (reader.failed() || !event)
        return Error(Code::data_loss,
                     "a reply whose field " + reader.failed().value_or("ev") + " is missing or mistyped");
    return std::move(*event);
}

}  // namespace pantheon::ipc

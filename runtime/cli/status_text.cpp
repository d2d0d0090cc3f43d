#include "runtime/cli/status_text.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/base/units.h"

namespace pantheon::cli {
namespace {

const Json& field(const Json& map, const char* key) {
    static const Json kNothing;
    const auto found = map.is_object() ? map.find(key) : map.end();
    return found == map.end() ? kNothing : *found;
}

std::string text(const Json& value) {
    if (value.is_string()) return value.get<std::string>();
    return value.is_null() ? std::string() : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string bytes(const Json& value) {
    return value.is_number_unsigned() || value.is_number_integer() ? format_bytes(value.get<std::uint64_t>())
                                                                   : text(value);
}

std::string duration(const Json& seconds) {
    if (!seconds.is_number()) return {};
    const auto s = static_cast<std::int64_t>(seconds.get<double>());
    if (s < 120) return std::to_string(s) + " s";
    if (s < 7200) return std::to_string(s / 60) + " min";
    return std::to_string(s / 3600) + " h " + std::to_string(s / 60 % 60) + " min";
}

/// A line of parts; a part whose value is missing is left out, and so is a line of none.
class Line {
  public:
    explicit Line(std::string label) : label_(std::move(label)) { label_.resize(10, ' '); }
    Line& part(const std::string& before, const std::string& value, const std::string& after = "") {
        if (value.empty()) return *this;
        if (!parts_.empty()) parts_ += ", ";
        parts_ += before + value + after;
        return *this;
    }
    std::string str() const { return parts_.empty() ? "" : label_ + parts_ + "\n"; }

  private:
    std::string label_;
    std::string parts_;
};

std::string die_line(const Json& die) {
    return Line("  die")
        .part("", text(field(die, "id")))
        .part("", text(field(die, "state")))
        .part("isa ", text(field(die, "isa")))
        .part("", text(field(die, "threads")), " threads")
        .part("weights ", bytes(field(die, "weights_bytes")))
        .part("KV ", bytes(field(die, "kv_used_bytes")), " of " + bytes(field(die, "kv_pool_bytes")))
        .str();
}

std::string engine_lines(const Json& engine) {
    const Json& slots = field(engine, "slots");
    const Json& queue = field(engine, "queue");
    std::string lines =
        Line("engine")
            .part("", text(field(engine, "name")))
            .part("", text(field(engine, "state")))
            .part("slots ", text(field(slots, "busy")),
                  " busy of " + text(field(slots, "effective")) + " (" + text(field(slots, "reason")) + ")")
            .part("parked ", text(field(slots, "parked")))
            .part("queue ", text(field(queue, "waiting")), " of " + text(field(queue, "limit")))
            .part("last step ", text(field(engine, "last_step_age_ms")), " ms ago")
            .str();
    for (const Json& die : field(engine, "dies")) lines += die_line(die);
    return lines;
}

}  // namespace

std::string status_text(const Json& status) {
    const Json& model = field(status, "model");
    const Json& tokens = field(status, "tokens");
    const Json& config = field(status, "config");
    std::string out = Line("daemon")
                          .part("", text(field(status, "state")))
                          .part("version ", text(field(status, "version")))
                          .part("protocol ", text(field(status, "protocol")))
                          .part("up ", duration(field(status, "uptime_s")))
                          .str();
    out += Line("model")
               .part("", text(field(model, "name")))
               .part("", text(field(model, "path")))
               .part("", text(field(model, "n_layer")), " layers")
               .part("", text(field(model, "n_vocab")), " vocabulary entries")
               .part("fingerprint ", text(field(model, "fingerprint")))
               .str();
    for (const Json& engine : field(status, "engines")) out += engine_lines(engine);
    out += Line("memory")
               .part("", text(field(field(status, "memory"), "level")))
               .part("rung ", text(field(field(status, "memory"), "rung")))
               .str();
    const Json& cache = field(status, "cache");
    out += Line("cache")
               .part("", bytes(field(cache, "bytes")), " of " + bytes(field(cache, "limit_bytes")))
               .part("hits ", text(field(cache, "hits")))
               .part("misses ", text(field(cache, "misses")))
               .part("states in ", text(field(cache, "states")))
               .str();
    out += Line("tokens")
               .part("prompt ", text(field(tokens, "prompt")))
               .part("cached ", text(field(tokens, "cached")))
               .part("completion ", text(field(tokens, "completion")))
               .str();
    out += Line("config").part("", text(field(config, "path"))).str();
    for (const Json& key : field(config, "pending_restart")) out += Line("  waits").part("", text(key)).str();
    for (const Json& request : field(status, "requests"))
        out += Line("request")
                   .part("", text(field(request, "id")))
                   .part("", text(field(request, "phase")))
                   .part("", text(field(request, "age_ms")), " ms old")
                   .str();
    return out;
}

std::string sessions_text(const Json& result) {
    std::string out;
    const Json& sessions = field(result, "sessions");
    if (!sessions.is_array()) return out;
    for (const Json& session : sessions)
        out += text(field(session, "session")) + ": " + text(field(session, "tokens")) + " tokens, " +
               bytes(field(session, "bytes")) + "\n";
    return out.empty() ? "no sessions\n" : out;
}

}  // namespace pantheon::cli

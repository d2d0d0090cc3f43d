#include "actors/status_report.h"

#include <algorithm>

namespace pantheon::actors {
namespace {

Json age(const std::optional<std::int64_t>& ms) {
    return ms ? Json(*ms) : Json(nullptr);
}

Json id_json(const RequestId& id) {
    return std::visit([](const auto& value) { return Json(value); }, id);
}

Json die_report(const DaemonSettings& settings, const EngineSnapshot& engine) {
    Json ops = Json::object();
    for (const auto& [op, implementation] : settings.engine.ops) ops[op] = implementation;
    return Json{
        {"id", settings.engine.die_id},
        {"kind", settings.engine.die_kind},
        {"isa", settings.engine.isa},
        {"threads", settings.engine.n_threads},
        {"state", engine.state},
        {"layers", Json::array({0, settings.model.n_layer})},
        {"weights_bytes", settings.model.weights_bytes},
        {"repack_bytes", engine.repack_bytes},
        {"kv_used_bytes", engine.kv_used_bytes},
        {"kv_pool_bytes", engine.kv_pool_bytes},
        {"ops", std::move(ops)},
    };
}

Json engine_report(const DaemonSettings& settings, const EngineSnapshot& engine) {
    return Json{
        {"name", settings.engine.name},
        {"state", engine.state},
        {"dies", Json::array({die_report(settings, engine)})},
        {"slots", Json{{"configured", settings.engine.n_slots},
                       {"effective", engine.n_slots},
                       {"reason", engine.slots_reason},
                       {"busy", engine.n_busy},
                       {"parked", engine.n_parked}}},
        {"queue", Json{{"waiting", engine.n_waiting}, {"limit", engine.queue_limit}}},
        {"last_step_age_ms", age(engine.last_step_age_ms)},
        {"last_token_age_ms", age(engine.last_token_age_ms)},
        {"longest_gap_ms", engine.longest_gap_ms},
        {"longest_gap_last_minute_ms", engine.longest_gap_last_minute_ms},
    };
}

Json change_list(const std::vector<ConfigChange>& changes) {
    Json list = Json::array();
    for (const ConfigChange& change : changes)
        list.push_back(Json{{"key", change.key}, {"before", change.before}, {"after", change.after}});
    return list;
}

}  // namespace

Json reload_report(const ReloadOutcome& outcome) {
    return Json{{"file", outcome.file},
                {"dry_run", outcome.is_dry_run},
                {"applied", change_list(outcome.applied)},
                {"pending_restart", change_list(outcome.pending_restart)}};
}

Json status_report(const DaemonSettings& settings, const EngineSnapshot& engine, bool is_draining,
                   std::int64_t uptime_s, const std::vector<RequestSummary>& own_requests) {
    Json requests = Json::array();
    for (const RequestSummary& request : own_requests)
        requests.push_back(
            Json{{"id", id_json(request.id)}, {"phase", request.phase}, {"age_ms", request.age_ms}});
    return Json{
        {"version", settings.version},
        {"protocol", 1},
        {"state", is_draining ? "draining" : engine.state},
        {"uptime_s", uptime_s},
        {"model", Json{{"path", settings.model.path},
                       {"name", settings.model.name},
                       {"fingerprint", settings.model.fingerprint},
                       {"n_layer", settings.model.n_layer},
                       {"n_vocab", settings.model.n_vocab},
                       {"nextn", settings.model.has_nextn ? 1 : 0}}},
        {"engines", Json::array({engine_report(settings, engine)})},
        {"memory", Json{{"level", level_name(engine.memory_level)}, {"rung", engine.memory_rung}}},
        {"cache", Json{{"bytes", engine.cache_bytes},
                       {"limit_bytes", engine.cache_limit_bytes},
                       {"disk_bytes", engine.cache_disk_bytes},
                       {"states", settings.engine.image_format == model::ImageFormat::f16 ? "f16" : "f32"},
                       {"hits", engine.cache_hits},
                       {"misses", engine.cache_misses}}},
        {"tokens", Json{{"prompt", engine.prompt_tokens},
                        {"cached", engine.cached_tokens},
                        {"completion", engine.completion_tokens}}},
        {"config", Json{{"path", settings.config_path}, {"pending_restart", settings.pending_restart}}},
        {"requests", std::move(requests)},
    };
}

}  // namespace pantheon::actors

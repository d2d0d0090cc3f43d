#include "runtime/daemon/live_settings.h"

#include <cstdint>

namespace pantheon::daemon {
namespace {

Status take(const model::GgufMetadata& file, const std::string& key, float& value) {
    const auto found = file.get_float("general.sampling." + key);
    if (!found) return found.error();
    if (*found) value = static_cast<float>(**found);
    return {};
}

template <class From, class To>
void take(const std::optional<From>& configured, To& value) {
    if (configured) value = static_cast<To>(*configured);
}

}  // namespace

Result<actors::SamplingDefaults> file_sampling(const model::GgufMetadata& file) {
    actors::SamplingDefaults defaults;
    if (auto s = take(file, "temp", defaults.temperature); !s) return std::move(s).error();
    if (auto s = take(file, "top_p", defaults.top_p); !s) return std::move(s).error();
    if (auto s = take(file, "min_p", defaults.min_p); !s) return std::move(s).error();
    const auto top_k = file.get_int("general.sampling.top_k", 0, INT32_MAX);
    if (!top_k) return top_k.error();
    if (*top_k) defaults.top_k = static_cast<std::int32_t>(**top_k);
    model::SamplingParams as_used;
    as_used.temperature = defaults.temperature;
    as_used.top_p = defaults.top_p;
    as_used.min_p = defaults.min_p;
    as_used.top_k = defaults.top_k;
    if (Status valid = model::validate(as_used, INT32_MAX); !valid)
        return std::move(valid).error().with_context("general.sampling");
    return defaults;
}

actors::SamplingDefaults sampling_defaults(const config::SamplingSection& configured,
                                           const actors::SamplingDefaults& of_file) {
    actors::SamplingDefaults defaults = of_file;
    take(configured.temperature, defaults.temperature);
    take(configured.top_k, defaults.top_k);
    take(configured.top_p, defaults.top_p);
    take(configured.min_p, defaults.min_p);
    // The file format has no keys for penalties.
    take(configured.repeat_penalty, defaults.repeat_penalty);
    take(configured.presence_penalty, defaults.presence_penalty);
    take(configured.frequency_penalty, defaults.frequency_penalty);
    return defaults;
}

actors::CacheSettings cache_of(const config::Config& config) {
    return {config.sessions.every, config.sessions.dir, static_cast<std::uint64_t>(config.sessions.bytes),
            static_cast<std::uint64_t>(config.sessions.disk_bytes)};
}

actors::LadderSettings ladder_of(const config::Config& config) {
    const config::MemorySection& memory = config.memory;
    actors::LadderSettings ladder;
    ladder.is_enabled = memory.ladder;
    if (memory.tight_free_bytes)
        ladder.tight_free_bytes = static_cast<std::uint64_t>(*memory.tight_free_bytes);
    if (memory.critical_free_bytes)
        ladder.critical_free_bytes = static_cast<std::uint64_t>(*memory.critical_free_bytes);
    ladder.tight_pressure = static_cast<double>(memory.tight_pressure);
    ladder.critical_pressure = static_cast<double>(memory.critical_pressure);
    ladder.dwell = memory.dwell;
    ladder.step = memory.step;
    ladder.slots_tight = static_cast<int>(memory.slots_tight);
    ladder.slots_critical = static_cast<int>(memory.slots_critical);
    ladder.cache_keep = static_cast<double>(memory.cache_keep) / 100;
    return ladder;
}

actors::Limits limits_of(const config::Config& config) {
    actors::Limits limits;
    limits.n_ctx = static_cast<std::int32_t>(config.kv.n_ctx);
    limits.slides = config.kv.overflow == model::KvOverflow::slide;
    limits.max_tokens = config.limits.max_tokens;
    limits.queue = static_cast<std::size_t>(config.scheduler.queue);
    limits.max_gap = config.scheduler.max_gap;
    limits.hang = config.die.hang;
    limits.stall = config.ipc.stall;
    limits.drain = config.daemon.drain;
    limits.admin_uids = config.ipc.admin_uids;
    return limits;
}

}  // namespace pantheon::daemon

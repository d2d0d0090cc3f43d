#include "actors/memory/ladder_policy.h"

#include <algorithm>
#include <cstdio>

#include "runtime/base/units.h"

namespace pantheon::actors {
namespace {

constexpr std::int64_t kSqueezedPrefillRows = 64;

/// How much better than the threshold that led to a level readings must be before it falls.
constexpr double kRoomSlack = 1.5;
constexpr double kPressureSlack = 2;

enum class Asked { to_enter, to_stay };

struct Finding {
    MemoryLevel level = MemoryLevel::ok;
    std::string reason;

    void raise(MemoryLevel to, const auto& why) {
        if (to <= level) return;
        level = to;
        reason = why();
    }
};

std::string percent(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.0f %%", value);
    return text;
}

Finding find_level(const MemoryReadings& readings, const LadderSettings& settings, Asked asked) {
    const double room_slack = asked == Asked::to_stay ? kRoomSlack : 1;
    const double pressure_slack = asked == Asked::to_stay ? kPressureSlack : 1;
    Finding finding;
    for (const MemoryRoom& room : readings.rooms) {
        const auto is_below = [&](std::uint64_t threshold) {
            return static_cast<double>(room.free_bytes) < room_slack * static_cast<double>(threshold);
        };
        const auto why = [&] {
            return room.name + ": " + format_bytes(room.free_bytes) + " free of " +
                   format_bytes(room.limit_bytes);
        };
        if (is_below(critical_bytes(settings, room.limit_bytes))) finding.raise(MemoryLevel::critical, why);
        if (is_below(tight_bytes(settings, room.limit_bytes))) finding.raise(MemoryLevel::tight, why);
    }
    for (const MemoryPressure& pressure : readings.pressures) {
        if (pressure.full * pressure_slack >= settings.critical_pressure)
            finding.raise(MemoryLevel::critical,
                          [&] { return pressure.name + ": full pressure " + percent(pressure.full); });
        if (pressure.some * pressure_slack >= settings.tight_pressure)
            finding.raise(MemoryLevel::tight,
                          [&] { return pressure.name + ": some pressure " + percent(pressure.some); });
    }
    if (readings.is_signalled)
        finding.raise(MemoryLevel::tight, [] { return std::string("signalled by the service manager"); });
    return finding;
}

int top_rung(MemoryLevel level) {
    switch (level) {
        case MemoryLevel::tight:
            return kTopRungWhenTight;
        case MemoryLevel::critical:
            return kTopRung;
        case MemoryLevel::ok:
            break;
    }
    return 0;
}

MemoryLevel one_below(MemoryLevel level) {
    return level == MemoryLevel::critical ? MemoryLevel::tight : MemoryLevel::ok;
}

/// Packed copies must not bring back the shortage that they were dropped for.
bool has_room_for(std::uint64_t n_bytes, const MemoryReadings& readings, const LadderSettings& settings) {
    return std::all_of(readings.rooms.begin(), readings.rooms.end(), [&](const MemoryRoom& room) {
        const double wanted = static_cast<double>(n_bytes) +
                              kRoomSlack * static_cast<double>(tight_bytes(settings, room.limit_bytes));
        return static_cast<double>(room.free_bytes) >= wanted;
    });
}

LadderState derived(const Finding& found, std::chrono::steady_clock::time_point at) {
    LadderState state = LadderState::fresh();
    state.level = found.level;
    state.rung = top_rung(found.level);
    state.keeps_packed = state.rung < 3;
    state.reason = found.reason;
    state.rung_since = at;
    return state;
}

}  // namespace

std::string_view level_name(MemoryLevel level) {
    switch (level) {
        case MemoryLevel::tight:
            return "TIGHT";
        case MemoryLevel::critical:
            return "CRITICAL";
        case MemoryLevel::ok:
            break;
    }
    return "OK";
}

std::uint64_t tight_bytes(const LadderSettings& settings, std::uint64_t limit_bytes) {
    return settings.tight_free_bytes.value_or(std::min(limit_bytes / 10, 2 * kGiB));
}

std::uint64_t critical_bytes(const LadderSettings& settings, std::uint64_t limit_bytes) {
    return settings.critical_free_bytes.value_or(std::min(limit_bytes / 25, kGiB / 2));
}

MemoryLevel level_asked_for(const MemoryReadings& readings, const LadderSettings& settings) {
    return find_level(readings, settings, Asked::to_enter).level;
}

LadderState next_state(const LadderState& before, const MemoryReadings& readings,
                       const LadderSettings& settings, std::uint64_t packed_bytes) {
    if (!settings.is_enabled) return LadderState::fresh();
    const Finding entering = find_level(readings, settings, Asked::to_enter);
    const Finding staying = find_level(readings, settings, Asked::to_stay);
    if (!before.is_derived) return derived(staying, readings.at);

    LadderState state = before;
    bool has_fallen = false;
    if (entering.level > state.level) {
        state.level = entering.level;
        state.reason = entering.reason;
        state.calm_since.reset();
    } else if (staying.level >= state.level) {
        state.calm_since.reset();
    } else {
        if (!state.calm_since) state.calm_since = readings.at;
        if (readings.at - *state.calm_since >= settings.dwell) {
            has_fallen = true;
            state.level = one_below(state.level);
            state.reason = staying.level == state.level ? staying.reason : std::string();
            state.calm_since = readings.at;
        }
    }

    const int top = top_rung(state.level);
    const bool is_step_due = readings.at - state.rung_since >= settings.step;
    if (state.level == MemoryLevel::critical) {
        state.rung = top;
    } else if (state.rung > top) {
        if (has_fallen || is_step_due) --state.rung;
    } else if (state.rung < top) {
        if (state.rung == 0 || (is_step_due && entering.level >= MemoryLevel::tight)) ++state.rung;
    }
    if (state.rung != before.rung) state.rung_since = readings.at;

    if (state.rung >= 3) {
        state.keeps_packed = false;
    } else if (!state.keeps_packed) {
        state.keeps_packed = state.level == MemoryLevel::ok && has_room_for(packed_bytes, readings, settings);
    }
    return state;
}

MemoryOrders orders_of(const LadderState& state, const LadderSettings& settings) {
    MemoryOrders orders;
    orders.level = state.level;
    orders.rung = state.rung;
    orders.reason = state.reason;
    const bool is_critical = state.level == MemoryLevel::critical;
    if (state.rung >= 1) {
        orders.cache_may_grow = false;
        orders.cache_keep = is_critical ? 0 : settings.cache_keep;
    }
    if (state.rung >= 2) orders.slot_limit = is_critical ? settings.slots_critical : settings.slots_tight;
    if (state.rung >= 3) orders.prefill_rows = kSqueezedPrefillRows;
    orders.keeps_packed = state.keeps_packed;
    orders.admits_as_q4_0 = state.rung >= 4;
    orders.converts_to_q4_0 = orders.admits_as_q4_0 && is_critical;
    if (state.rung >= 5) {
        orders.is_admission_open = false;
        orders.retry_after = settings.dwell;  // the soonest that it can be over
    }
    return orders;
}

}  // namespace pantheon::actors

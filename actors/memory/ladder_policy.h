// What the memory ladder decides: from readings to a level and a rung, and from these to what is in force.
// Pure functions, tested by table; the actor memory_ladder carries them out.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "actors/memory/readings.h"

namespace pantheon::actors {

enum class MemoryLevel : std::uint8_t { ok, tight, critical };
/// "OK", "TIGHT", "CRITICAL"
std::string_view level_name(MemoryLevel level);

inline constexpr int kTopRungWhenTight = 4;
inline constexpr int kTopRung = 5;

/// memory.* of the configuration.
struct LadderSettings {
    bool is_enabled = true;
    /// A bound with less room than this is short; absent: a part of its size, see tight_bytes().
    std::optional<std::uint64_t> tight_free_bytes, critical_free_bytes;
    double tight_pressure = 20;              // percent of time in which some tasks wait
    double critical_pressure = 20;           // percent of time in which all tasks wait
    std::chrono::milliseconds dwell{10000};  // how long it must be calm before the level falls
    std::chrono::milliseconds step{2000};    // between two rungs, up while TIGHT lasts and down
    int slots_tight = 8;
    int slots_critical = 1;
    double cache_keep =
        0.5;  // of what the prefix cache held when it had to stop growing; CRITICAL keeps none
};

/// Where a bound of that size begins to be TIGHT or CRITICAL.
std::uint64_t tight_bytes(const LadderSettings& settings, std::uint64_t limit_bytes);
std::uint64_t critical_bytes(const LadderSettings& settings, std::uint64_t limit_bytes);

/// Where the ladder stands. All rungs up to `rung` are in force; they are undone from the top.
struct LadderState {
    bool is_derived = false;  // false: nothing is known of what was in force before
    MemoryLevel level = MemoryLevel::ok;
    int rung = 0;
    bool keeps_packed = true;  // outlives rung 3 until there is room for packing again
    std::string reason;        // the reading that led to the level
    std::optional<std::chrono::steady_clock::time_point> calm_since;
    std::chrono::steady_clock::time_point rung_since;

    static LadderState fresh() {
        LadderState state;
        state.is_derived = true;
        return state;
    }
};

/// The level that readings ask of a ladder at rest.
MemoryLevel level_asked_for(const MemoryReadings& readings, const LadderSettings& settings);

/// The level rises with the first reading that asks for it and falls by one once readings have been clearly
/// better for `dwell`. CRITICAL puts every rung in force at once; TIGHT one after the other for as long as
/// readings still ask for it. A state that is not derived takes the level that the readings would keep up.
/// packed_bytes: what packed copies of weights take when they are there.
LadderState next_state(const LadderState& before, const MemoryReadings& readings,
                       const LadderSettings& settings, std::uint64_t packed_bytes);

/// What is in force, said in one message.
struct MemoryOrders {
    MemoryLevel level = MemoryLevel::ok;
    int rung = 0;
    std::string reason;

    bool cache_may_grow = true;     // rung 1
    double cache_keep = 1;          // of what the cache held when it had to stop growing
    std::optional<int> slot_limit;  // rung 2
    std::int64_t prefill_rows = std::numeric_limits<std::int64_t>::max();  // rung 3: of a step, at most
    bool keeps_packed = true;                                              // packed copies of weights
    bool admits_as_q4_0 = false;    // rung 4a: KV of sequences that begin from now on
    bool converts_to_q4_0 = false;  // rung 4b: and of those that run
    bool is_admission_open = true;  // rung 5
    std::chrono::milliseconds retry_after{0};

    friend bool operator==(const MemoryOrders&, const MemoryOrders&) = default;
};
MemoryOrders orders_of(const LadderState& state, const LadderSettings& settings);

}  // namespace pantheon::actors

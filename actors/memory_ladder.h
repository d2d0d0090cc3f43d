// The actor that watches the memory of the host and tells the scheduler how far to give way.
#pragma once

#include <optional>

#include "actors/memory/ladder_policy.h"
#include "actors/messages.h"

namespace pantheon::actors {

struct MemoryLadderState {
    static inline const char* name = "memory_ladder";

    MemoryLadderActor::pointer self = nullptr;
    SettingsPtr settings;
    WiringPtr wiring;
    LadderState ladder;
    std::optional<MemoryOrders> orders;  // in force; nothing before the first readings

    void on_readings(const MemoryReadings& readings);
    void on_wiring(const WiringPtr& next);
};

/// is_restart: a predecessor died; what it had put in force is not known, and the first readings decide.
MemoryLadderActor::behavior_type memory_ladder(MemoryLadderActor::stateful_pointer<MemoryLadderState> self,
                                               SettingsPtr settings, bool is_restart);

}  // namespace pantheon::actors

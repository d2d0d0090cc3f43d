// The actor that watches the memory of the host and tells the scheduler how far to give way.
#pragma once

#include <atomic>
#include <memory>
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
    /// Set while nothing is in force: the source then keeps readings to itself that ask for nothing, so that
    /// an idle daemon sleeps.
    using Threshold = std::atomic<std::shared_ptr<const LadderSettings>>;
    std::shared_ptr<Threshold> rest_until = std::make_shared<Threshold>();

    void on_readings(const MemoryReadings& readings);
    void on_wiring(const WiringPtr& next);
};

/// is_restart: a predecessor died; what it had put in force is not known, and the first readings decide.
MemoryLadderActor::behavior_type memory_ladder(MemoryLadderActor::stateful_pointer<MemoryLadderState> self,
                                               SettingsPtr settings, bool is_restart);

}  // namespace pantheon::actors

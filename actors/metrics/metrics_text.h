// The daemon's counters as a Prometheus page.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

#include "actors/messages.h"

namespace pantheon::actors {

/// What the gateway counts. Counters begin again when it is replaced, which Prometheus takes for a restart.
struct RequestCounters {
    /// generate and score by how they finished, as in TicketFinished.
    std::map<std::string, std::uint64_t> by_finish{{"cancelled", 0}, {"deadline", 0}, {"error", 0},
                                                   {"length", 0},    {"refused", 0},  {"stop", 0}};
    std::uint64_t n_ended_unread = 0;  // of the cancelled: their client had not read for ipc.stall_ms
};

/// Text format 0.0.4: for each metric its HELP and TYPE and its samples; times in seconds, sizes in bytes.
std::string metrics_text(const DaemonSettings& settings, const EngineSnapshot& engine,
                         const RequestCounters& requests, std::chrono::seconds uptime);

}  // namespace pantheon::actors

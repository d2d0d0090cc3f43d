// The `status` reply as a JSON tree (contracts: status).
#pragma once

#include "actors/messages.h"

namespace pantheon::actors {

struct RequestSummary {
    RequestId id;
    std::string phase;  // preparing | queued | running
    std::int64_t age_ms = 0;
};

Json status_report(const DaemonSettings& settings, const EngineSnapshot& engine, bool is_draining,
                   std::int64_t uptime_s, const std::vector<RequestSummary>& own_requests);

}  // namespace pantheon::actors

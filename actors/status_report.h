// The `status` and `reload` replies as JSON trees.
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

/// Of a reload without errors.
Json reload_report(const ReloadOutcome& outcome);

}  // namespace pantheon::actors

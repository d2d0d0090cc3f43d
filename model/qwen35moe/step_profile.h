// Where the time of steps goes, part by part. A step without a profile pays one pointer comparison a part.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/exec/thread_team.h"

namespace pantheon::model {

enum class Phase {
    embedding,
    mixer_norm,
    gdn_projections,
    gdn_heads,
    gdn_output,
    attention,
    moe_norm,
    moe_router,
    moe_hidden,
    moe_output,
    head,
};
constexpr int kPhases = static_cast<int>(Phase::head) + 1;
const char* phase_name(Phase phase);

/// Sums over all steps since the last clear().
struct StepProfile {
    struct Part {
        std::int64_t n = 0;       // times it ran
        double seconds = 0;       // of wall
        double team_seconds = 0;  // of wall, in which all threads were called
        double busy_seconds = 0;  // of all threads, in those
        std::int64_t n_barriers = 0;
    };
    std::array<Part, kPhases> parts;
    std::int64_t n_steps = 0;
    kernels::TeamMeter meter;  // the executor's team counts here

    Part& part(Phase phase) { return parts[static_cast<std::size_t>(phase)]; }
    void clear();
};

class PhaseTimer {
  public:
    PhaseTimer(StepProfile* profile, Phase phase) : profile_(profile), phase_(phase) {
        if (profile_) start();
    }
    ~PhaseTimer() {
        if (profile_) stop();
    }
    PhaseTimer(const PhaseTimer&) = delete;
    PhaseTimer& operator=(const PhaseTimer&) = delete;

  private:
    void start();
    void stop();
    StepProfile* profile_;
    Phase phase_;
    double start_ = 0;
    kernels::TeamMeter meter_;
};

}  // namespace pantheon::model

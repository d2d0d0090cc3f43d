#include "model/qwen35moe/step_profile.h"

#include <chrono>

namespace pantheon::model {
namespace {

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

const char* phase_name(Phase phase) {
    static constexpr const char* kNames[] = {
        "embedding", "mixer norm", "gdn projections", "gdn heads",  "gdn output", "attention",
        "moe norm",  "moe router", "moe hidden",      "moe output", "head"};
    static_assert(sizeof kNames / sizeof *kNames == kPhases);
    return kNames[static_cast<int>(phase)];
}

void StepProfile::clear() {
    parts = {};
    n_steps = 0;
}

void PhaseTimer::start() {
    meter_ = profile_->meter;
    start_ = now();
}

void PhaseTimer::stop() {
    StepProfile::Part& part = profile_->part(phase_);
    const kernels::TeamMeter& meter = profile_->meter;
    ++part.n;
    part.seconds += now() - start_;
    part.n_barriers += meter.n_rounds - meter_.n_rounds;
    part.team_seconds += meter.round_seconds - meter_.round_seconds;
    part.busy_seconds += meter.busy_seconds - meter_.busy_seconds;
}

}  // namespace pantheon::model

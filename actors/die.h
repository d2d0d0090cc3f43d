// The actor that owns one device.
#pragma once

#include <memory>
#include <span>
#include <unordered_map>

#include "actors/messages.h"

namespace pantheon::actors {

struct DieState {
    static inline const char* name = "die";

    struct SlotSampling {
        model::SamplingParams params;
        int n_top = -1;
        std::vector<TokenId> recent;  // the last tokens fed, oldest first: the penalties' window
    };

    SettingsPtr settings;
    std::unique_ptr<model::Executor> executor;
    std::unordered_map<SlotId, SlotSampling> slots;

    void bind(const BindSlot& message);
    void release(const ReleaseSlot& message);
    StepDone step(const StepPlan& plan);

  private:
    void step_runs(std::span<const PlannedRun> planned, std::vector<RunResult>& results);
    RunResult read_out(const PlannedRun& run, const model::StepLogits& logits, std::int64_t& row);
};

/// Makes the executor, has it pass its canary, tells the supervisor (DieReady), then steps. Spawn detached
/// for a real device.
DieActor::behavior_type die(DieActor::stateful_pointer<DieState> self, SettingsPtr settings,
                            UpHandle<SupervisorActor> supervisor);

}  // namespace pantheon::actors

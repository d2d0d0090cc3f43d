// The actor that owns one device.
#pragma once

#include <memory>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "actors/messages.h"
#include "actors/part_clock.h"

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
    model::TokenSet never_sampled;
    std::unordered_map<SlotId, SlotSampling> slots;
    std::unordered_set<SlotId> unrestored;      // bound from a checkpoint that could not be used
    std::unordered_set<SlotId> without_memory;  // to be bound when there was none for a state
    std::unordered_map<CheckpointId, model::CheckpointPtr> checkpoints;
    std::unordered_map<SlotId, PartClock> part_clocks;  // of runs in parts that are not done
    Clock::time_point packing_since;
    bool is_packing = false;  // a PackWeights of ours is on its way

    void bind(const BindSlot& message);
    void keep_in_q4_0(const KeepInQ4_0& message);
    void release(const ReleaseSlot& message);
    CheckpointTaken keep(SlotId slot, CheckpointId checkpoint, bool is_exact);
    void drop(const DropCheckpoints& message);
    void trim();
    StepDone step(const StepPlan& plan);
    /// Packs some more weights; true: there is more to do.
    bool pack();

  private:
    Status bind_executor(const BindSlot& message);
    void step_runs(std::span<const PlannedRun> planned, StepDone& done);
    void step_part(const PlannedRun& run, double part_ms, StepDone& done);
    static RunResult failed(SlotId slot, const Error& error);
    RunResult read_out(const PlannedRun& run, const model::StepLogits& logits, std::int64_t& row);
};

/// Makes the executor, has it pass its canary, tells the supervisor (DieReady), then steps, and packs weights
/// between steps until all are packed. Spawn detached for a real device.
DieActor::behavior_type die(DieActor::stateful_pointer<DieState> self, SettingsPtr settings,
                            UpHandle<SupervisorActor> supervisor);

}  // namespace pantheon::actors

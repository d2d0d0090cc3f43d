#include "actors/die.h"

#include <malloc.h>

#include <algorithm>

#include "actors/canary.h"
#include "runtime/base/units.h"

namespace pantheon::actors {
namespace {

/// What the runs of a plan ask of the executor.
std::vector<model::StepRun> to_step_runs(std::span<const PlannedRun> plan) {
    std::vector<model::StepRun> runs;
    runs.reserve(plan.size());
    for (const PlannedRun& planned : plan) {
        const auto logits = planned.kind == RunKind::sample  ? model::WantLogits::last
                            : planned.kind == RunKind::score ? model::WantLogits::all
                                                             : model::WantLogits::none;
        runs.push_back({planned.slot, planned.pos, planned.tokens, logits});
    }
    return runs;
}

void remember(std::vector<TokenId>& recent, const std::vector<TokenId>& tokens) {
    recent.insert(recent.end(), tokens.begin(), tokens.end());
    if (recent.size() > model::kPenaltyWindow)
        recent.erase(recent.begin(), recent.end() - model::kPenaltyWindow);
}

}  // namespace

Status DieState::bind_executor(const BindSlot& message) {
    if (message.from == CheckpointId())
        return executor->bind(message.slot,
                              message.is_q4_0 ? model::SequenceKv::q4_0 : model::SequenceKv::configured);
    const auto found = checkpoints.find(message.from);
    if (found == checkpoints.end())
        return Error(Code::not_found, "checkpoint " + std::to_string(message.from.value));
    return executor->restore(message.slot, *found->second);
}

void DieState::bind(const BindSlot& message) {
    release({message.slot});
    if (Status status = bind_executor(message); !status) {
        // The first step of the slot reports it.
        log_error(name, "slot " + std::to_string(message.slot.value) + ": " + status.error().to_string());
        if (message.from != CheckpointId()) {
            unrestored.insert(message.slot);
        } else if (status.error().code() == Code::resource_exhausted) {
            without_memory.insert(message.slot);
        }
        return;
    }
    slots[message.slot] = {message.sampling, message.n_top, message.recent};
}

void DieState::keep_in_q4_0(const KeepInQ4_0& message) {
    if (Status status = executor->convert_to_q4_0(message.slot); !status)
        log_warning(name, "KV stays as it is: " + status.error().to_string());
}

void DieState::release(const ReleaseSlot& message) {
    executor->release(message.slot);
    slots.erase(message.slot);
    part_clocks.erase(message.slot);
    unrestored.erase(message.slot);
    without_memory.erase(message.slot);
}

CheckpointTaken DieState::keep(SlotId slot, CheckpointId checkpoint, bool is_exact) {
    CheckpointTaken taken;
    taken.checkpoint = checkpoint;
    auto kept = executor->snapshot(slot, is_exact ? model::ImageFormat::f32 : settings->engine.image_format);
    if (kept) {
        taken.is_kept = true;
        taken.kv_blocks = (*kept)->kv_blocks();
        checkpoints[checkpoint] = *std::move(kept);
    } else {
        log_warning(name, "a state is not kept: " + kept.error().to_string());
    }
    return taken;
}

void DieState::drop(const DropCheckpoints& message) {
    if (message.is_all) checkpoints.clear();
    for (const CheckpointId checkpoint : message.checkpoints) checkpoints.erase(checkpoint);
}

/// Freed memory stays with the allocator otherwise, and the system sees none of it.
void DieState::trim() {
    executor->release_scratch();
    ::malloc_trim(0);
}

/// What came out of one run whose rows of logits begin at `row`; moves `row` past them.
RunResult DieState::read_out(const PlannedRun& run, const model::StepLogits& logits, std::int64_t& row) {
    RunResult result;
    result.slot = run.slot;
    SlotSampling& slot = slots.at(run.slot);
    remember(slot.recent, run.tokens);
    if (run.kind == RunKind::sample) {
        auto drawn = model::sample(logits.sampling_row(row++), slot.params, slot.recent, run.sample_index,
                                   never_sampled, slot.n_top);
        result.is_finite = drawn.is_finite;
        result.token = drawn.token;
        if (drawn.is_finite && drawn.token < 0) result.error = "logit_bias leaves no token to draw";
        result.logprob = drawn.logprob;
        result.top = std::move(drawn.top);
    } else if (run.kind == RunKind::score) {
        for (const TokenId target : run.targets) {
            const auto values = logits.row(row++);
            const double norm = model::log_sum_exp(values);
            result.scored.push_back(values[static_cast<std::size_t>(target)] - norm);
            result.is_finite = result.is_finite && result.scored.back() == result.scored.back();
            result.scored_top.push_back(model::top_logprobs(values, run.n_top, norm));
        }
    }
    return result;
}

/// What the executor says of a run that it could not take.
RunResult DieState::failed(SlotId slot, const Error& error) {
    RunResult result;
    result.slot = slot;
    result.error = error.to_string();
    result.is_exhausted = error.code() == Code::resource_exhausted;
    return result;
}

/// Steps these runs together, or, when that fails, each by itself: a step that fails has changed no slot, and
/// what is wrong with one slot must not end the others.
void DieState::step_runs(std::span<const PlannedRun> planned, StepDone& done) {
    if (planned.empty()) return;
    auto logits = executor->step(to_step_runs(planned));
    if (logits) {
        std::int64_t row = 0;
        for (const PlannedRun& run : planned) done.runs.push_back(read_out(run, *logits, row));
    } else if (planned.size() == 1) {
        done.runs.push_back(failed(planned.front().slot, logits.error()));
    } else {
        for (std::size_t i = 0; i < planned.size(); ++i) step_runs(planned.subspan(i, 1), done);
    }
}

void DieState::step_part(const PlannedRun& run, double part_ms, StepDone& done) {
    PartClock& clock = part_clocks[run.slot];
    clock.begin_part(Clock::now(), part_ms);
    auto logits = executor->step_in_parts(to_step_runs({&run, 1}).front(),
                                          [&](model::RunUnit unit, model::RunUnit next) {
                                              clock.unit_done(Clock::now(), unit);
                                              return clock.is_part_over(next);
                                          });
    if (!logits) {
        done.runs.push_back(failed(run.slot, logits.error()));
    } else if (*logits) {
        clock.unit_done(Clock::now(), model::RunUnit::head);
        done.longest_unit_ms = clock.longest_unit_ms();
        part_clocks.erase(run.slot);
        std::int64_t row = 0;
        done.runs.push_back(read_out(run, **logits, row));
    } else {
        done.n_rows = 0;
        RunResult begun;
        begun.slot = run.slot;
        begun.is_begun = true;
        done.runs.push_back(std::move(begun));
    }
}

StepDone DieState::step(const StepPlan& plan) {
    const Clock::time_point start = Clock::now();
    StepDone done;
    done.step = plan.step;
    std::vector<PlannedRun> bound;
    for (const PlannedRun& run : plan.runs) {
        done.n_rows += static_cast<std::int64_t>(run.tokens.size());
        if (slots.contains(run.slot)) {
            bound.push_back(run);
        } else {
            RunResult unbound;
            unbound.slot = run.slot;
            unbound.error = "the slot could not be bound";
            unbound.is_exhausted = without_memory.contains(run.slot);
            unbound.is_unrestored = unbound.is_exhausted || unrestored.contains(run.slot);
            done.runs.push_back(std::move(unbound));
        }
    }
    if (plan.part_ms == 0) {
        step_runs(bound, done);
    } else {
        for (const PlannedRun& run : bound) step_part(run, plan.part_ms, done);
    }
    done.kv_used_bytes = executor->kv_used_bytes();
    done.kv_pool_bytes = executor->kv_pool_bytes();
    done.repack_bytes = executor->repack_bytes();
    done.elapsed_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    return done;
}

bool DieState::pack() {
    // What a stream may have to wait in addition to its step, for as long as there is something to pack.
    constexpr std::chrono::milliseconds kSlice{20};
    const Result<bool> more = executor->pack_some(kSlice);
    if (more && *more) return true;
    if (!more) log_warning(name, more.error().message());
    if (executor->repack_bytes() > 0)
        log_info(name, format_bytes(executor->repack_bytes()) + " of weights are packed, " +
                           std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() -
                                                                                                packing_since)
                                              .count()) +
                           " ms after it began");
    return false;
}

namespace {

void begin_packing(DieActor::stateful_pointer<DieState> self) {
    DieState& state = self->state;
    state.packing_since = Clock::now();
    state.executor->begin_repack(state.settings->engine.repack);
    if (!state.is_packing) self->send(self, PackWeights{});
    state.is_packing = true;
}

}  // namespace

DieActor::behavior_type die(DieActor::stateful_pointer<DieState> self, SettingsPtr settings,
                            UpHandle<SupervisorActor> supervisor) {
    install_handlers(self);
    DieState& state = self->state;
    state.settings = settings;
    state.never_sampled = model::TokenSet(settings->text.tokenizer->never_sampled());
    auto executor = settings->engine.make_executor();
    DieReady ready;
    if (executor) {
        state.executor = *std::move(executor);
        if (Status canary = run_canary(*state.executor, *settings->text.tokenizer); !canary)
            ready.error = canary.error();
    } else {
        ready.error = executor.error();
    }
    if (auto up = supervisor.lock()) self->send(up, ready);
    if (ready.error) {
        self->quit(caf::sec::runtime_error);
    } else if (settings->engine.repack != model::Repack::none) {
        begin_packing(self);
    }

    return {
        [self](const BindSlot& message) { self->state.bind(message); },
        [self](const KeepInQ4_0& message) { self->state.keep_in_q4_0(message); },
        [self](const ReleaseSlot& message) { self->state.release(message); },
        // Whoever asks gets the answer; a scheduler that has been replaced meanwhile does not.
        [self](const KeepState& message) {
            CheckpointTaken taken = self->state.keep(message.slot, message.checkpoint, message.is_exact);
            if (auto scheduler = caf::actor_cast<SchedulerActor>(self->current_sender()))
                self->send(scheduler, std::move(taken));
        },
        [self](const DropCheckpoints& message) { self->state.drop(message); },
        [self](const AdoptCheckpoint& message) {
            self->state.checkpoints[message.checkpoint] = message.state;
        },
        [self](const GetCheckpoint& message) -> model::CheckpointPtr {
            const auto found = self->state.checkpoints.find(message.checkpoint);
            return found == self->state.checkpoints.end() ? nullptr : found->second;
        },
        [self](const TrimMemory&) { self->state.trim(); },
        [self](const StepPlan& plan) {
            StepDone done = self->state.step(plan);
            if (auto scheduler = caf::actor_cast<SchedulerActor>(self->current_sender()))
                self->send(scheduler, std::move(done));
        },
        [self, supervisor](const PackWeights&) {
            self->state.is_packing = self->state.pack();
            if (self->state.is_packing) {
                self->send(self, PackWeights{});
            } else if (auto up = supervisor.lock()) {
                self->send(up, WeightsPacked{self->state.executor->repack_bytes()});
            }
        },
        [self, supervisor](const KeepPacked& message) {
            if (message.is_packed) return begin_packing(self);
            self->state.executor->begin_repack(model::Repack::none);
            if (auto up = supervisor.lock()) self->send(up, WeightsPacked{0});
        },
    };
}

}  // namespace pantheon::actors

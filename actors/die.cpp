#include "actors/die.h"

#include <algorithm>

#include "actors/canary.h"

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

void DieState::bind(const BindSlot& message) {
    executor->release(message.slot);
    slots.erase(message.slot);
    if (Status status = executor->bind(message.slot); !status) {
        // The first step of the slot reports it.
        log_error(name, "slot " + std::to_string(message.slot.value) + ": " + status.error().to_string());
        return;
    }
    slots[message.slot] = {message.sampling, message.n_top, {}};
}

void DieState::release(const ReleaseSlot& message) {
    executor->release(message.slot);
    slots.erase(message.slot);
}

/// What came out of one run whose rows of logits begin at `row`; moves `row` past them.
RunResult DieState::read_out(const PlannedRun& run, const model::StepLogits& logits, std::int64_t& row) {
    RunResult result;
    result.slot = run.slot;
    SlotSampling& slot = slots.at(run.slot);
    remember(slot.recent, run.tokens);
    if (run.kind == RunKind::sample) {
        auto drawn = model::sample(logits.row(row++), slot.params, slot.recent, run.sample_index,
                                   settings->text.tokenizer->never_sampled(), slot.n_top);
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

/// Steps these runs together, or, when that fails, each by itself: a step that fails has changed no slot, and
/// what is wrong with one slot must not end the others.
void DieState::step_runs(std::span<const PlannedRun> planned, std::vector<RunResult>& results) {
    if (planned.empty()) return;
    auto logits = executor->step(to_step_runs(planned));
    if (logits) {
        std::int64_t row = 0;
        for (const PlannedRun& run : planned) results.push_back(read_out(run, *logits, row));
    } else if (planned.size() == 1) {
        RunResult failed;
        failed.slot = planned.front().slot;
        failed.error = logits.error().to_string();
        results.push_back(std::move(failed));
    } else {
        for (std::size_t i = 0; i < planned.size(); ++i) step_runs(planned.subspan(i, 1), results);
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
            RunResult failed;
            failed.slot = run.slot;
            failed.error = "the slot could not be bound";
            done.runs.push_back(std::move(failed));
        }
    }
    step_runs(bound, done.runs);
    done.kv_used_bytes = executor->kv_used_bytes();
    done.kv_pool_bytes = executor->kv_pool_bytes();
    done.elapsed_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    return done;
}

DieActor::behavior_type die(DieActor::stateful_pointer<DieState> self, SettingsPtr settings,
                            UpHandle<SupervisorActor> supervisor) {
    install_handlers(self);
    DieState& state = self->state;
    state.settings = settings;
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
    if (ready.error) self->quit(caf::sec::runtime_error);

    return {
        [self](const BindSlot& message) { self->state.bind(message); },
        [self](const ReleaseSlot& message) { self->state.release(message); },
        [self](const StepPlan& plan) {
            StepDone done = self->state.step(plan);
            // Whoever sent the plan gets the result; a scheduler that has been replaced meanwhile does not.
            if (auto scheduler = caf::actor_cast<SchedulerActor>(self->current_sender()))
                self->send(scheduler, std::move(done));
        },
    };
}

}  // namespace pantheon::actors

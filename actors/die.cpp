#include "actors/die.h"

#include <algorithm>

#include "actors/canary.h"

namespace pantheon::actors {
namespace {

/// What the runs of a plan ask of the executor.
std::vector<model::StepRun> to_step_runs(const StepPlan& plan) {
    std::vector<model::StepRun> runs;
    runs.reserve(plan.runs.size());
    for (const PlannedRun& planned : plan.runs) {
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

StepDone DieState::step(const StepPlan& plan) {
    const Clock::time_point start = Clock::now();
    StepDone done;
    done.step = plan.step;
    for (const PlannedRun& run : plan.runs) done.n_rows += static_cast<std::int64_t>(run.tokens.size());

    const std::vector<model::StepRun> runs = to_step_runs(plan);
    auto logits = executor->step(runs);
    std::int64_t row = 0;
    for (const PlannedRun& run : plan.runs) {
        RunResult result;
        result.slot = run.slot;
        const auto slot = slots.find(run.slot);
        if (!logits) {
            result.error = logits.error().to_string();
        } else if (slot == slots.end()) {
            result.error = "internal: the slot is not bound";
        } else {
            remember(slot->second.recent, run.tokens);
            if (run.kind == RunKind::sample) {
                auto drawn = model::sample(logits->row(row++), slot->second.params, slot->second.recent,
                                           run.sample_index, settings->text.tokenizer->never_sampled(),
                                           slot->second.n_top);
                result.is_finite = drawn.is_finite;
                result.token = drawn.token;
                if (drawn.is_finite && drawn.token < 0) result.error = "logit_bias leaves no token to draw";
                result.logprob = drawn.logprob;
                result.top = std::move(drawn.top);
            } else if (run.kind == RunKind::score) {
                for (const TokenId target : run.targets) {
                    const auto values = logits->row(row++);
                    const double norm = model::log_sum_exp(values);
                    result.scored.push_back(values[static_cast<std::size_t>(target)] - norm);
                    result.is_finite = result.is_finite && result.scored.back() == result.scored.back();
                    result.scored_top.push_back(model::top_logprobs(values, run.n_top, norm));
                }
            }
        }
        done.runs.push_back(std::move(result));
    }
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

#include "actors/scheduler.h"

#include <algorithm>

namespace pantheon::actors {
namespace {

constexpr int kTicksPerProgress = 4;  // once a second

std::int64_t age_ms(Clock::time_point then) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - then).count();
}

Error deadline_error() {
    return {Code::deadline_exceeded, "the request's deadline_ms has passed"};
}

}  // namespace

// ---- RunningSequence
// ------------------------------------------------------------------------------------------

std::int64_t RunningSequence::n_known() const {
    const auto n_prompt = static_cast<std::int64_t>(job->prepared->prompt.size());
    return is_score() ? n_prompt - 1 : n_prompt + static_cast<std::int64_t>(generated.size());
}

TokenId RunningSequence::token(std::int64_t i) const {
    const auto n_prompt = static_cast<std::int64_t>(job->prepared->prompt.size());
    return i < n_prompt ? job->prepared->prompt[static_cast<std::size_t>(i)]
                        : generated[static_cast<std::size_t>(i - n_prompt)];
}

std::vector<TokenId> RunningSequence::tokens(std::int64_t begin, std::int64_t end) const {
    std::vector<TokenId> result;
    result.reserve(static_cast<std::size_t>(end - begin));
    for (std::int64_t i = begin; i < end; ++i) result.push_back(token(i));
    return result;
}

bool RunningSequence::is_held_back() const {
    if (is_score()) return false;
    const auto n_generated = static_cast<std::int64_t>(generated.size());
    const auto& credit = job->prepared->credit;
    return is_paused || (credit && n_generated >= *credit + n_credit);
}

bool RunningSequence::is_decoding() const {
    return !is_score() && place && !is_ended && !end_after_step && !generated.empty() && !is_held_back() &&
           n_known() - n_fed == 1;
}

bool RunningSequence::may_grow() const {
    const auto n_generated = static_cast<std::int64_t>(generated.size());
    const Prepared& prepared = *job->prepared;
    if (is_paused || n_generated >= prepared.max_tokens) return false;
    if (prepared.credit && n_generated >= *prepared.credit + n_credit) return false;
    return prepared.parser.stop.empty() || n_generated <= n_verdicts;
}

bool RunningSequence::may_sample() const {
    if (is_score()) return true;
    if (!may_grow() || forced_token()) return false;
    // Whether reasoning goes on is known to the slot, which sees the text; it says so once.
    const auto& budget = job->prepared->thinking_budget;
    return !budget || *budget == 0 || is_reasoning_open ||
           static_cast<std::int64_t>(generated.size()) < *budget;
}

std::optional<TokenId> RunningSequence::forced_token() const {
    const Prepared& prepared = *job->prepared;
    if (!prepared.thinking_budget) return std::nullopt;
    const bool is_open = *prepared.thinking_budget == 0 || is_reasoning_open.value_or(false);
    const std::int64_t i = static_cast<std::int64_t>(generated.size()) - *prepared.thinking_budget;
    if (!is_open || i < 0 || i >= static_cast<std::int64_t>(prepared.reasoning_close.size()))
        return std::nullopt;
    return prepared.reasoning_close[static_cast<std::size_t>(i)];
}

// ---- admission
// ------------------------------------------------------------------------------------------------

void SchedulerState::submit(const JobPtr& job) {
    if (refuse_for_memory(job)) return;
    const bool is_score = job->prepared->kind == Prepared::Kind::score;
    if (queue.is_full() && !job->is_resubmitted) {
        self->send(wiring->gateway, TicketFinished{job->ticket, "refused"});
        job->reply.send(ErrorEvent{
            Error(Code::resource_exhausted,
                  "the queue is full: " + std::to_string(queue.size()) + " requests wait (scheduler.queue)"),
            retry_after_ms()});
        return;
    }
    if (!job->is_resubmitted && !is_score) {
        const bool has_free_place = free_place() && free_seat();
        const auto ahead = has_free_place && queue.is_empty() ? 0 : queue.ahead_of(job->prepared->priority);
        job->reply.send(AcceptedEvent{static_cast<std::int64_t>(ahead), job->prepared->sampling.seed,
                                      job->prepared->max_tokens});
    }
    self->send(wiring->gateway, TicketAdmitted{job});
    queue.push(job);
    arm_tick();
    dispatch();
}

std::int64_t SchedulerState::retry_after_ms() const {
    const double waves = static_cast<double>(queue.size()) / static_cast<double>(std::max(slot_limit, 1));
    return std::max<std::int64_t>(100, static_cast<std::int64_t>(waves * std::max(mean_request_ms, 100.0)));
}

void SchedulerState::finish_unbound(const JobPtr& job, const std::string& finish,
                                    std::optional<Error> error) {
    early_credit.erase(job->ticket);
    self->send(wiring->gateway, TicketFinished{job->ticket, finish});
    if (job->prepared->kind == Prepared::Kind::score) {
        job->reply.send(ErrorEvent{error.value_or(Error(Code::cancelled, "the request was cancelled")), {}});
    } else {
        DoneEvent done;
        done.finish = finish;
        done.error = std::move(error);
        done.usage.prompt_tokens = static_cast<std::int64_t>(job->prepared->prompt.size());
        done.timings.queue_ms = static_cast<double>(age_ms(job->received));
        job->reply.send(std::move(done));
    }
}

void SchedulerState::dispatch() {
    if (is_recovering()) return;
    give_places();
    start_step();
}

void SchedulerState::begin(std::size_t index, SlotId place, JobPtr job) {
    RunningSequence& sequence = seats[index].emplace();
    sequence.job = job;
    sequence.place = place;
    take_early_credit(sequence);
    n_prompt_tokens += job->prepared->prompt.size();
    const SeatId seat(static_cast<std::int32_t>(index));
    self->send(wiring->slots[index], BeginSequence{seat, job});
    self->send(wiring->gateway, TicketBound{job->ticket, seat});
    tell_rung(sequence, index);
    if (orders.admits_as_q4_0) keep_in_q4_0(index);
    if (sequence.is_score() && sequence.n_known() == 0) {  // one token: nothing to evaluate
        sequence.is_ended = true;
        self->send(wiring->slots[index], ScoredTokens{job->ticket, {}, {}, true});
    }
}

// ---- steps
// ----------------------------------------------------------------------------------------------------

/// Sequences are started when their turn has come and not before: by then the one before them may have left
/// a checkpoint that serves them too.
PlannedStep SchedulerState::plan_rows() {
    while (true) {
        std::vector<SlotProgress> progress;
        for (std::size_t i = 0; i < seats.size(); ++i) {
            close_reasoning(i);
            const auto& s = seats[i];
            if (!s || s->is_ended || !s->place || s->awaited_file) continue;
            SlotProgress& slot = progress.emplace_back();
            slot.slot = *s->place;
            slot.ticket = s->job->ticket;
            // Whoever is to leave as soon as its run is done must not wait for it.
            slot.priority =
                s->is_park_due ? std::numeric_limits<std::int32_t>::max() : s->job->prepared->priority;
            slot.n_known = s->n_known();
            slot.n_fed = s->n_fed;
            slot.may_sample = s->may_sample();
            slot.is_score = s->is_score();
            slot.stop = next_mark(*s);
            slot.has_reply = !s->generated.empty();
            slot.begun = s->begun;
        }
        const auto n_rows = static_cast<int>(std::count_if(progress.begin(), progress.end(), is_decode_row));
        const int n_waiting = std::max(n_rows, n_decoding());
        PlannedStep step = plan_step(progress, read_limits(n_rows, n_waiting));
        step.n_decoding = n_waiting;
        bool has_started = false;
        for (const PlannedRows& r : step.rows) {
            const std::size_t index = *find_placed(r.slot);
            if (seats[index]->is_started) continue;
            start_sequence(index);
            has_started = true;
        }
        if (!has_started) return step;
    }
}

int SchedulerState::n_decoding() const {
    return static_cast<int>(
        std::count_if(seats.begin(), seats.end(), [](const auto& s) { return s && s->is_decoding(); }));
}

ReadLimits SchedulerState::read_limits(int n_decode_rows, int n_decoding) const {
    ReadLimits limits = pacer.limits(n_decode_rows, n_decoding, settings->limits.max_gap);
    for (ChunkRows* rows : {&limits.beside, &limits.in_parts}) {
        rows->prompt = std::min(rows->prompt, orders.prefill_rows);
        rows->score = std::min(rows->score, orders.prefill_rows);
    }
    return limits;
}

void SchedulerState::start_step() {
    if (step_in_flight || !has_die() || is_recovering() || waits_for_room()) return;
    const PlannedStep planned = plan_rows();
    if (planned.rows.empty()) return;

    StepPlan plan;
    plan.step = next_step++;
    step_shape = {};
    step_shape.n_decoding = planned.n_decoding;
    step_shape.is_part = planned.part_ms > 0;
    plan.part_ms = planned.part_ms;
    for (PlannedRows r : planned.rows) {
        RunningSequence& sequence = *seats[*find_placed(r.slot)];
        PlannedRun run;
        run.slot = r.slot;
        run.pos = static_cast<std::int32_t>(r.begin);
        // What was scored before a die was replaced is only evaluated again.
        const bool is_rescored = sequence.is_score() && r.begin < sequence.n_scored;
        if (is_rescored) r.end = std::min(r.end, sequence.n_scored);
        run.tokens = sequence.tokens(r.begin, r.end);
        sequence.planned = r;
        if (sequence.is_score() && !is_rescored) {
            run.kind = RunKind::score;
            run.targets = sequence.tokens(r.begin + 1, r.end + 1);
            run.n_top = sequence.job->prepared->n_top;
        } else if (r.samples) {
            run.kind = RunKind::sample;
            run.sample_index = sequence.generated.size();
        }
        if (sequence.is_decoding()) {
            ++step_shape.n_decode_rows;
        } else {
            step_shape.begins = !sequence.begun;
            step_shape.n_read_rows += static_cast<std::int64_t>(run.tokens.size());
            step_shape.is_score = run.kind == RunKind::score;
        }
        sequence.is_in_flight = true;
        plan.runs.push_back(std::move(run));
    }
    step_in_flight = plan.step;
    step_started = Clock::now();
    is_hang_reported = false;
    self->send(wiring->die, std::move(plan));
    send_drops();
    arm_tick();
}

void SchedulerState::on_step_done(const StepDone& done) {
    if (step_in_flight != done.step) return;  // of a die that has been replaced since
    step_in_flight.reset();
    const Clock::time_point now = Clock::now();
    measure(done, now);
    kv_used_bytes = done.kv_used_bytes;
    kv_pool_bytes = done.kv_pool_bytes;
    repack_bytes = done.repack_bytes;
    StepDone step = done;
    for (RunResult& result : step.runs) apply(result, now);
    if (std::any_of(step.runs.begin(), step.runs.end(), [](const RunResult& r) { return r.is_exhausted; }))
        on_exhausted();
    park_after_step();
    convert_running();
    end_expired(now);
    dispatch();
}

void SchedulerState::apply(RunResult& result, const Clock::time_point now) {
    const auto found = find_placed(result.slot);
    if (!found || !seats[*found]->is_in_flight) return;
    const std::size_t index = *found;
    RunningSequence& sequence = *seats[index];
    sequence.is_in_flight = false;
    if (sequence.end_after_step) {
        // Cancelled while computing: what came out was never accepted.
        const EndSequence message = *sequence.end_after_step;
        end(index, message.finish, message.error);
        return;
    }
    if (result.is_unrestored) return start_again(index);
    if (result.is_exhausted) return;  // on_exhausted()
    if (result.is_begun) {
        sequence.begun = sequence.planned;
        return;
    }
    sequence.begun.reset();
    if (!result.error.empty()) {
        end(index, "error", Error(Code::internal, "the step failed: " + result.error));
        return;
    }
    if (!result.is_finite) {
        end(index, "error", Error(Code::internal, "the model gave logits that are not finite"));
        return;
    }
    const TicketId ticket = sequence.job->ticket;
    sequence.n_fed = sequence.planned.end;
    keep_state(sequence);
    if (!result.scored.empty()) {
        sequence.n_scored += static_cast<std::int64_t>(result.scored.size());
        sequence.is_ended = sequence.n_scored == sequence.n_known();
        self->send(wiring->slots[index], ScoredTokens{ticket, std::move(result.scored),
                                                      std::move(result.scored_top), sequence.is_ended});
        return;
    }
    if (result.token < 0) return;  // a chunk of the prompt

    last_token = now;
    if (const auto gap = sequence.gap_clock.token(now)) gaps.add(*gap, now);
    AcceptedToken accepted;
    accepted.token = result.token;
    accepted.logprob = result.logprob;
    accepted.top = std::move(result.top);
    accepted.is_end_of_generation = settings->text.tokenizer->is_end_of_generation(result.token);
    accept(index, std::move(accepted));
    update_gap_clock(sequence);
}

void SchedulerState::accept(std::size_t index, AcceptedToken token) {
    RunningSequence& sequence = *seats[index];
    ++n_completion_tokens;
    n_exhausted_alone = 0;
    sequence.generated.push_back(token.token);
    token.ticket = sequence.job->ticket;
    token.is_last =
        static_cast<std::int64_t>(sequence.generated.size()) >= sequence.job->prepared->max_tokens;
    sequence.is_ended = token.is_end_of_generation || token.is_last;
    // Before the client hears of the end: its next request may want to go on from here.
    if (sequence.is_ended) keep_final_state(index);
    self->send(wiring->slots[index], std::move(token));
}

/// Accepts the tokens that end reasoning which has used its budget. They are part of the sequence from then
/// on: the next step evaluates them, and the draw after them has the index that follows theirs.
void SchedulerState::close_reasoning(std::size_t index) {
    while (seats[index] && !seats[index]->is_ended && !seats[index]->is_amid_run() &&
           seats[index]->may_grow()) {
        const auto forced = seats[index]->forced_token();
        if (!forced) return;
        AcceptedToken token;
        token.token = *forced;
        token.is_forced = true;
        accept(index, std::move(token));
    }
}

void SchedulerState::end(std::size_t index, std::string finish, std::optional<Error> error) {
    RunningSequence& sequence = *seats[index];
    sequence.is_ended = true;
    sequence.is_cut_off = true;
    self->send(wiring->slots[index], EndSequence{sequence.job->ticket, std::move(finish), std::move(error)});
}

// ---- what slots and the gateway say
// -----------------------------------------------------------------------------

std::optional<std::size_t> SchedulerState::find(TicketId ticket) const {
    for (std::size_t i = 0; i < seats.size(); ++i)
        if (seats[i] && seats[i]->job->ticket == ticket) return i;
    return std::nullopt;
}

std::optional<std::size_t> SchedulerState::find_placed(SlotId place) const {
    for (std::size_t i = 0; i < seats.size(); ++i)
        if (seats[i] && seats[i]->place == place) return i;
    return std::nullopt;
}

void SchedulerState::cancel(const CancelTicket& message) {
    if (JobPtr job = queue.remove(message.ticket)) {
        finish_unbound(job, message.finish, message.error);
        return;
    }
    const auto index = find(message.ticket);
    if (!index || seats[*index]->is_ended) return;
    RunningSequence& sequence = *seats[*index];
    if (sequence.is_in_flight) {
        if (!sequence.end_after_step)
            sequence.end_after_step = EndSequence{message.ticket, message.finish, message.error};
    } else {
        end(*index, message.finish, message.error);
    }
}

void SchedulerState::add_credit(const AddCredit& message) {
    if (const auto index = find(message.ticket)) {
        seats[*index]->n_credit += message.n;
        update_gap_clock(*seats[*index]);
        dispatch();
        return;
    }
    const auto& waiting = queue.jobs();
    const bool is_waiting = std::any_of(waiting.begin(), waiting.end(),
                                        [&](const JobPtr& job) { return job->ticket == message.ticket; });
    if (is_waiting || is_recovering()) early_credit[message.ticket] += message.n;
}

void SchedulerState::take_early_credit(RunningSequence& sequence) {
    const auto found = early_credit.find(sequence.job->ticket);
    if (found == early_credit.end()) return;
    sequence.n_credit += found->second;
    early_credit.erase(found);
}

void SchedulerState::pause(const PauseTicket& message) {
    const auto index = find(message.ticket);
    if (!index) return;
    seats[*index]->is_paused = message.is_paused;
    update_gap_clock(*seats[*index]);
    dispatch();
}

void SchedulerState::on_verdict(const SlotVerdict& message) {
    const auto index = find(message.ticket);
    if (!index) return;
    seats[*index]->n_verdicts += message.n;
    if (message.is_reasoning_open) seats[*index]->is_reasoning_open = message.is_reasoning_open;
    start_step();
}

void SchedulerState::on_freed(const SlotFreed& message) {
    const auto index = static_cast<std::size_t>(message.seat.value);
    if (!seats[index] || seats[index]->job->ticket != message.ticket) return;
    const double ms = static_cast<double>(age_ms(seats[index]->job->received));
    mean_request_ms = mean_request_ms == 0 ? ms : 0.9 * mean_request_ms + 0.1 * ms;
    keep_final_state(index);
    leave(index);
    if (orders.rung > 0 && has_die()) self->send(wiring->die, TrimMemory{});
    dispatch();
}

/// The sequence is over: its place and what was kept of it while it was parked are free.
void SchedulerState::leave(std::size_t index) {
    RunningSequence& sequence = *seats[index];
    forget_parked_state(sequence);
    if (sequence.place && has_die()) self->send(wiring->die, ReleaseSlot{*sequence.place});
    seats[index].reset();
    end_hold();
    // The next step tells again; an idle engine holds nothing.
    if (std::none_of(seats.begin(), seats.end(), [](const auto& s) { return s && s->place; }))
        kv_used_bytes = 0;
}

// ---- replaced parts
// ---------------------------------------------------------------------------------------------

bool SchedulerState::is_recovering() const {
    return std::any_of(is_report_awaited.begin(), is_report_awaited.end(),
                       [](bool awaited) { return awaited; });
}

void SchedulerState::on_wiring(const WiringPtr& next) {
    const WiringPtr previous = wiring;
    wiring = next;
    for (std::size_t i = 0; i < seats.size(); ++i) {
        const bool is_new_slot = !previous || previous->slots[i] != wiring->slots[i];
        if (is_new_slot && is_report_awaited[i]) self->send(wiring->slots[i], ReportSlot{});
        if (previous && is_new_slot) slot_replaced(i);
    }
    if (!previous || previous->store != wiring->store) list_disk();
    if (!previous || previous->die_generation != wiring->die_generation) die_replaced();
    if (!previous && has_die()) {
        // Of a scheduler before us, which gave its sequences other places.
        for (int i = 0; i < settings->engine.n_slots; ++i) self->send(wiring->die, ReleaseSlot{SlotId(i)});
        self->send(wiring->die, DropCheckpoints{{}, true});
    }
    if (has_die() && (!previous || previous->die_generation != wiring->die_generation)) load_saved();
    dispatch();
}

void SchedulerState::slot_replaced(std::size_t index) {
    if (!seats[index]) return;
    const JobPtr job = seats[index]->job;
    leave(index);
    finish_unbound(job, "error", Error(Code::internal, "the slot of this request failed"));
}

void SchedulerState::die_replaced() {
    // Whatever the old die held is gone: every sequence is evaluated again from its tokens. Tokens that were
    // accepted are fed, not drawn again, so the client sees nothing.
    step_in_flight.reset();
    if (has_die()) squeeze_die({});
    for (std::size_t i = 0; i < seats.size(); ++i) {
        if (!seats[i]) continue;
        RunningSequence& sequence = *seats[i];
        forget_parked_state(sequence);
        sequence.is_in_flight = false;
        sequence.begun.reset();
        sequence.is_park_due = false;
        sequence.is_started = false;
        sequence.n_fed = 0;
        if (sequence.end_after_step && !sequence.is_ended) {
            const EndSequence message = *sequence.end_after_step;
            end(i, message.finish, message.error);
        }
    }
    end_hold();
    cache.clear();
}

void SchedulerState::on_report(const SlotReport& report) {
    const auto index = static_cast<std::size_t>(report.seat.value);
    if (!is_report_awaited[index]) return;
    is_report_awaited[index] = false;
    if (report.job) {
        RunningSequence& sequence =
            seats[index].emplace();  // a place is given to it like to one that is parked
        sequence.job = report.job;
        sequence.generated = report.generated;
        sequence.n_scored = report.n_scored;
        sequence.n_verdicts = report.n_verdicts;
        sequence.is_reasoning_open = report.is_reasoning_open;
        sequence.is_q4_0 = report.is_q4_0;
        sequence.n_cached = 0;  // whatever it was, the slot knows
        take_early_credit(sequence);
        arm_tick();
    }
    dispatch();
}

// ---- time
// -------------------------------------------------------------------------------------------------------

void SchedulerState::arm_tick() {
    if (is_tick_pending) return;
    is_tick_pending = true;
    self->delayed_send(self, kTick, Tick{});
}

void SchedulerState::end_expired(Clock::time_point now) {
    for (const JobPtr& job : queue.remove_expired(now)) finish_unbound(job, "deadline", deadline_error());
    for (const auto& sequence : seats)
        if (sequence && sequence->job->prepared->deadline && *sequence->job->prepared->deadline <= now)
            cancel({sequence->job->ticket, "deadline", deadline_error()});
}

void SchedulerState::tick() {
    is_tick_pending = false;
    end_expired(Clock::now());
    if (is_hanging() && !is_hang_reported) {
        is_hang_reported = true;
        log_error(name, "the step under way has taken longer than die.hang_ms (" +
                            std::to_string(settings->limits.hang.count()) + ")");
    }
    report_progress();
    count_waiting_ticks();
    n_hold_ticks = std::max(0, n_hold_ticks - 1);
    free_a_seat();
    dispatch();
    const bool has_sequence =
        std::any_of(seats.begin(), seats.end(), [](const auto& s) { return s.has_value(); });
    if (has_sequence || !queue.is_empty() || step_in_flight) arm_tick();
}

/// Tells every client whose stream has nothing to say yet how far its request is. Also how a client that is
/// gone without a word is noticed.
void SchedulerState::report_progress() {
    std::unordered_map<TicketId, int> still_quiet;
    const auto count = [&](const JobPtr& job, const char* phase, std::int64_t n_done) {
        if (job->prepared->kind == Prepared::Kind::score) return;
        const auto before = quiet_ticks.find(job->ticket);
        int n = (before == quiet_ticks.end() ? 0 : before->second) + 1;
        if (n == kTicksPerProgress) {
            const auto n_prompt = static_cast<std::int64_t>(job->prepared->prompt.size());
            job->reply.send(ProgressEvent{phase, std::min(n_done, n_prompt), n_prompt});
            n = 0;
        }
        still_quiet[job->ticket] = n;
    };
    for (const JobPtr& job : queue.jobs()) count(job, "queued", 0);
    for (const auto& sequence : seats) {
        if (!sequence || sequence->is_ended || sequence->end_after_step) continue;
        if (!sequence->place) {
            count(sequence->job, "parked", sequence->n_fed);
            continue;
        }
        // More than the one token of a decode step to evaluate: the prompt, or all of it again after a die
        // was replaced. A slot that may have found a stop string in what it has is left alone.
        const bool may_have_stopped =
            !sequence->job->prepared->parser.stop.empty() &&
            sequence->n_verdicts < static_cast<std::int64_t>(sequence->generated.size());
        const bool is_reading = sequence->generated.empty() ? sequence->n_fed < sequence->n_known()
                                                            : sequence->n_known() - sequence->n_fed > 1;
        if (is_reading && !may_have_stopped) count(sequence->job, "prefill", sequence->n_fed);
    }
    quiet_ticks = std::move(still_quiet);
}

bool SchedulerState::is_hanging() const {
    return step_in_flight && age_ms(step_started) > settings->limits.hang.count();
}

EngineSnapshot SchedulerState::snapshot() const {
    EngineSnapshot snapshot;
    snapshot.state = !wiring || (wiring->die_generation == 0) ? "loading"
                     : !has_die() || is_hanging()             ? "degraded"
                                                              : "ready";
    snapshot.n_slots = slot_limit;
    snapshot.slots_reason = slot_limit_reason;
    for (const auto& sequence : seats)
        if (sequence) {
            ++(sequence->place ? snapshot.n_busy : snapshot.n_parked);
            snapshot.running.push_back(sequence->job->ticket);
        }
    for (const JobPtr& job : queue.jobs()) snapshot.queued.push_back(job->ticket);
    snapshot.n_waiting = queue.size();
    snapshot.queue_limit = queue.limit();
    if (last_step) snapshot.last_step_age_ms = age_ms(*last_step);
    if (last_token) snapshot.last_token_age_ms = age_ms(*last_token);
    snapshot.kv_used_bytes = kv_used_bytes;
    snapshot.kv_pool_bytes = kv_pool_bytes;
    snapshot.repack_bytes = repack_bytes;
    snapshot.prompt_tokens = n_prompt_tokens;
    snapshot.cached_tokens = n_cached_tokens;
    snapshot.cache_bytes = cache.bytes();
    snapshot.cache_limit_bytes = cache.budget_bytes();
    snapshot.cache_hits = cache.n_hits();
    snapshot.cache_misses = cache.n_misses();
    snapshot.cache_disk_bytes = disk.bytes();
    for (const SavedState& state : saved) snapshot.cache_disk_bytes += state.bytes;
    snapshot.completion_tokens = n_completion_tokens;
    snapshot.is_step_hanging = is_hanging();
    add_memory(snapshot);
    add_meters(snapshot);
    return snapshot;
}

TicketList SchedulerState::tickets() const {
    TicketList list;
    for (const JobPtr& job : queue.jobs()) list.jobs.emplace_back(job, false);
    for (const auto& sequence : seats)
        if (sequence) list.jobs.emplace_back(sequence->job, true);
    return list;
}

SchedulerActor::behavior_type scheduler(SchedulerActor::stateful_pointer<SchedulerState> self,
                                        SettingsPtr settings, bool is_restart) {
    install_handlers(self);
    SchedulerState& state = self->state;
    state.self = self;
    state.queue = AdmissionQueue(settings->limits.queue);
    state.seats.resize(static_cast<std::size_t>(settings->engine.n_seats()));
    state.is_report_awaited.assign(state.seats.size(), is_restart);
    state.cache = PrefixCache(settings->engine.checkpoint, settings->cache.limit_bytes);
    state.kv_pool_bytes = settings->engine.kv_pool_bytes;
    state.settings = std::move(settings);
    state.limit_disk();
    state.slot_limit = state.most_places();
    if (state.slot_limit < state.settings->engine.n_slots) state.slot_limit_reason = "kv.pool_bytes";
    return {
        [self](const JobPtr& job) { self->state.submit(job); },
        [self](const CancelTicket& message) { self->state.cancel(message); },
        [self](const AddCredit& message) { self->state.add_credit(message); },
        [self](const PauseTicket& message) { self->state.pause(message); },
        [self](const StepDone& done) { self->state.on_step_done(done); },
        [self](const SlotVerdict& message) { self->state.on_verdict(message); },
        [self](const SlotFreed& message) { self->state.on_freed(message); },
        [self](const SlotReport& report) { self->state.on_report(report); },
        [self](const WiringPtr& wiring) { self->state.on_wiring(wiring); },
        [self](const Tick&) { self->state.tick(); },
        [self](const SettingsPtr& next) { self->state.adopt(next); },
        [self](const CheckpointTaken& message) { self->state.on_checkpoint(message); },
        [self](const MemoryOrders& message) { self->state.on_orders(message); },
        [self](const WeightsPacked& message) { self->state.repack_bytes = message.n_bytes; },
        [self](const SetSlotLimit& message) { self->state.set_slot_limit(message); },
        [self](const GetSnapshot&) -> SnapshotPtr {
            return std::make_shared<const EngineSnapshot>(self->state.snapshot());
        },
        [self](const SessionCommandPtr& command) { return self->state.session_command(command); },
        [self](const SpillAll& message) { return self->state.spill_all(message); },
        [self](const ListTickets&) -> TicketListPtr {
            return std::make_shared<const TicketList>(self->state.tickets());
        },
    };
}

}  // namespace pantheon::actors

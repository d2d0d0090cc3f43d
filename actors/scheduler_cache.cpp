// The scheduler's side of the prefix cache: where a sequence resumes and when its state is kept.
#include <algorithm>

#include "actors/cache/checkpoint_marks.h"
#include "actors/scheduler.h"
#include "model/sampler/sampler.h"

namespace pantheon::actors {

CacheSpace space_of(const Identity& who, CacheMode mode) {
    if (mode == CacheMode::shared) return kSharedSpace;
    return who.curve_key.empty() ? "uid:" + std::to_string(who.uid) : "curve:" + who.curve_key;
}

namespace {

CacheSpace space_of(const Job& job) {
    return actors::space_of(job.who, job.prepared->cache);
}

}  // namespace

bool SchedulerState::uses_cache(const RunningSequence& sequence) const {
    // The states in the cache are those of kv.format.
    return cache.is_enabled() && !sequence.is_score() && !sequence.is_q4_0 &&
           sequence.job->prepared->cache != CacheMode::off;
}

/// Of what is kept in f16 only a reply that has not begun may go on: one that began from its prompt's tokens
/// and has to be evaluated again stays what it was.
bool SchedulerState::may_resume(const RunningSequence& sequence) const {
    const bool began_from_nothing = sequence.n_cached && *sequence.n_cached == 0;
    return uses_cache(sequence) &&
           !(began_from_nothing && settings->engine.image_format == model::ImageFormat::f16);
}

// ---- where a sequence starts
// ------------------------------------------------------------------------------------------------

void SchedulerState::start_sequence(std::size_t index) {
    RunningSequence& sequence = *seats[index];
    const Prepared& prepared = *sequence.job->prepared;
    if (await_disk(sequence)) return;
    sequence.is_started = true;
    sequence.marks.clear();
    PrefixCache::Lookup found;
    if (uses_cache(sequence)) {
        const CacheSpace space = space_of(*sequence.job);
        if (may_resume(sequence)) {
            found = cache.find(space, prepared.prompt);
        } else {
            found.n_shared = cache.look(space, prepared.prompt).n_shared;
        }
        PromptShape shape;
        shape.n_tokens = static_cast<std::int64_t>(prepared.prompt.size());
        shape.message_ends = prepared.message_ends;
        shape.n_cached = found.length;
        shape.n_shared = std::max(found.n_shared, disk.look(space, prepared.prompt).n_shared);
        sequence.marks = checkpoint_marks(shape, settings->cache.every);
    }
    sequence.n_fed = found.length;
    sequence.resumed_from = sequence.last_checkpoint = found.checkpoint;
    if (!sequence.n_cached) {
        sequence.n_cached = found.length;
        n_cached_tokens += static_cast<std::uint64_t>(found.length);
        self->send(wiring->slots[index], PromptCached{sequence.job->ticket, found.length});
    }
    BindSlot bind{*sequence.place, prepared.sampling, prepared.n_top, found.checkpoint, {}, sequence.is_q4_0};
    const auto window = static_cast<std::int64_t>(model::kPenaltyWindow);
    bind.recent = sequence.tokens(std::max<std::int64_t>(0, found.length - window), found.length);
    self->send(wiring->die, std::move(bind));
}

/// The die could not use the checkpoint: the sequence starts once more, without it.
void SchedulerState::start_again(std::size_t index) {
    RunningSequence& sequence = *seats[index];
    sequence.may_load = false;  // what failed now would fail again
    if (sequence.resumed_from != CheckpointId()) {
        cache.give_up(sequence.resumed_from);
        send_drops();
        n_cached_tokens -= static_cast<std::uint64_t>(sequence.n_cached.value_or(0));
        sequence.n_cached.reset();
    }
    sequence.is_started = false;
    sequence.begun.reset();
    sequence.n_fed = 0;
}

// ---- what is kept
// -----------------------------------------------------------------------------------------------

/// The next index at which a run has to end so that the state there can be kept.
std::int64_t SchedulerState::next_mark(const RunningSequence& sequence) const {
    const auto next = std::upper_bound(sequence.marks.begin(), sequence.marks.end(), sequence.n_fed);
    return next == sequence.marks.end() ? std::numeric_limits<std::int64_t>::max() : *next;
}

/// A context that has slid has lost rows that another reply to the same prompt would read.
bool SchedulerState::is_keepable(std::int64_t n_tokens) const {
    return !settings->limits.slides || n_tokens <= settings->limits.n_ctx;
}

/// Keeps the state that the sequence has reached, if it is one to be kept: before its next step changes it.
void SchedulerState::keep_state(RunningSequence& sequence) {
    const std::int64_t end = sequence.n_fed;
    if (!uses_cache(sequence) || !is_keepable(end) || !sequence.place || !has_die()) return;
    const bool is_mark = std::binary_search(sequence.marks.begin(), sequence.marks.end(), end);
    const bool is_reply = end > static_cast<std::int64_t>(sequence.job->prepared->prompt.size());
    const std::int64_t every = settings->cache.every;
    if (!is_mark && !(is_reply && every > 0 && end % every == 0)) return;
    const auto checkpoint =
        cache.add(space_of(*sequence.job), sequence.tokens(0, end), sequence.last_checkpoint);
    if (checkpoint) {
        sequence.last_checkpoint = *checkpoint;
        self->send(wiring->die, KeepState{*sequence.place, *checkpoint});
    }
    send_drops();
}

/// The state in which a reply ended, which costs no copy since the slot goes on without it. Tokens that were
/// computed and not accepted are not part of it.
void SchedulerState::keep_final_state(std::size_t index) {
    RunningSequence& sequence = *seats[index];
    if (sequence.is_final_state_kept || sequence.is_cut_off || !uses_cache(sequence)) return;
    if (!has_die() || !sequence.place || !sequence.is_started || sequence.is_amid_run() ||
        sequence.n_fed == 0)
        return;
    if (!is_keepable(sequence.n_fed)) return;
    sequence.is_final_state_kept = true;
    const CacheSpace space = space_of(*sequence.job);
    const auto& session = sequence.job->prepared->session;
    const std::vector<TokenId> tokens = sequence.tokens(0, sequence.n_fed);
    CheckpointId checkpoint = cache.at(space, tokens);
    if (checkpoint == CheckpointId()) {
        checkpoint =
            cache.add(space, tokens, sequence.last_checkpoint, session.has_value()).value_or(CheckpointId());
        if (checkpoint != CheckpointId()) self->send(wiring->die, KeepState{*sequence.place, checkpoint});
    }
    send_drops();
    if (!session) return;
    const Status named =
        cache.name_session(space, *session, space_of(sequence.job->who, CacheMode::private_), checkpoint);
    if (!named) log_warning(name, named.error().to_string());
}

void SchedulerState::on_checkpoint(const CheckpointTaken& message) {
    if (is_parked_name(message.checkpoint))
        return;  // one that the die does not have is noticed at the resume
    if (!message.is_kept) {
        cache.give_up(message.checkpoint);
    } else if (!cache.confirm(message.checkpoint, message.kv_blocks) && has_die()) {
        self->send(wiring->die, DropCheckpoints{{message.checkpoint}, false});
    }
    send_drops();
    spill_some();
}

/// What goes unwritten is offered to the disk on its way out: the die gives it before it hears of the drop.
void SchedulerState::send_drops() {
    auto unsaved = cache.take_unsaved();
    for (; has_die() && !unsaved.empty() && n_spilling < kMostSpilling; unsaved.pop_back())
        spill(unsaved.back().id, unsaved.back().space, std::move(unsaved.back().tokens));
    auto dropped = cache.take_dropped();
    if (!dropped.empty() && has_die()) self->send(wiring->die, DropCheckpoints{std::move(dropped), false});
}

void SchedulerState::adopt(const SettingsPtr& next) {
    settings = next;
    queue.set_limit(next->limits.queue);
    cache.set_limit(next->cache.limit_bytes);
    limit_disk();
    send_drops();
}

}  // namespace pantheon::actors

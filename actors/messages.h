// Every actor interface of the daemon and every message that crosses one. Messages are values; what is large
// and shared goes as shared_ptr<const T>. To and from a die they are plain serialisable structs, so that a
// die can live elsewhere one day. Client-facing structs are in client_messages.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/cache/disk_index.h"
#include "actors/caf.h"
#include "actors/client_messages.h"
#include "actors/memory/ladder_policy.h"
#include "actors/memory/readings.h"
#include "actors/metrics/histogram.h"
#include "actors/settings.h"
#include "model/chat/output_parser.h"
#include "model/sampler/sampler.h"
#include "model/state/state_file.h"
#include "runtime/base/ids.h"

namespace pantheon::actors {

using Clock = std::chrono::steady_clock;

// ---- a request on its way through
// -----------------------------------------------------------------------------

/// Where the events of one request go. Copied along with the request; whoever holds the ticket answers
/// through it.
struct Respondent {
    std::shared_ptr<ClientPort> port;
    RoutingId client;
    RequestId id;
    void send(Event event) const { port->send(client, id, std::move(event)); }
};

/// A request that has been understood: text is tokens, defaults are filled in, every number is in range.
struct Prepared {
    enum class Kind { generate, score };
    Kind kind = Kind::generate;
    std::vector<TokenId> prompt;  // score: the tokens to score
    std::int64_t max_tokens = 0;  // already limited by n_ctx
    bool stream = true;
    model::SamplingParams sampling;
    int n_top = -1;  // −1: no logprobs
    model::OutputParserConfig parser;
    /// Tokens that reasoning may take before it is closed from here; absent: no limit, or no reasoning.
    std::optional<std::int64_t> thinking_budget;
    std::vector<TokenId> reasoning_close;  // what is fed then, token by token: "\n</think>\n\n"
    std::int32_t priority = 0;
    std::optional<Clock::time_point> deadline;
    std::optional<std::int64_t> credit;  // absent: unlimited
    CacheMode cache = CacheMode::off;
    std::optional<std::string> session;  // the name of the final state
    std::vector<std::int64_t>
        message_ends;  // positions in the prompt; the last: before the assistant's header
};

/// A request with its identity inside the daemon. `received` starts every timing.
struct Job {
    TicketId ticket;
    Respondent reply;
    Identity who;
    Clock::time_point received;
    std::shared_ptr<const Request> request;    // as decoded; dropped once it is prepared
    std::shared_ptr<const void> in_flight;     // Inbound's, dropped with it
    std::shared_ptr<const Prepared> prepared;  // set by the text worker
    bool is_resubmitted = false;  // was accepted before a scheduler was replaced: accept silently
};
using JobPtr = std::shared_ptr<const Job>;

// ---- messages
// -------------------------------------------------------------------------------------------------

/// Ends a request from outside; `error` set: finish is "error" or "cancelled" with that code.
struct CancelTicket {
    TicketId ticket;
    std::string finish = "cancelled";
    std::optional<Error> error;
};
struct AddCredit {
    TicketId ticket;
    std::int64_t n = 0;
};
struct PauseTicket {
    TicketId ticket;
    bool is_paused = false;
};

/// scheduler → gateway: the job, prepared now, waits in the queue; its holder is the scheduler from here on.
struct TicketAdmitted {
    JobPtr job;
};
/// scheduler → gateway: the ticket left the queue for a slot actor, which keeps it to its end.
struct TicketBound {
    TicketId ticket;
    SeatId seat;
};
/// Last holder → gateway: the final event has been sent. `finish` as in `done`; "refused": an error instead;
/// a score job that was answered finishes with "stop". Requests that are text only need none.
struct TicketFinished {
    TicketId ticket;
    std::string finish;
};

/// scheduler → slot: a sequence begins.
struct BeginSequence {
    SeatId seat;
    JobPtr job;
};
/// scheduler → slot: tokens of the prompt that were not evaluated because a checkpoint held them.
struct PromptCached {
    TicketId ticket;
    std::int64_t n = 0;
};
/// scheduler → slot: the sequence has lost its place on the die for a while.
struct SequenceParked {
    TicketId ticket;
};
/// scheduler → slot: from here on its KV is kept in q4_0, whatever kv.format says.
struct SequenceInQ4_0 {
    TicketId ticket;
};
/// scheduler → slot: one accepted token.
struct AcceptedToken {
    TicketId ticket;
    TokenId token = -1;
    float logprob = 0;
    std::vector<model::TokenLogprob> top;
    bool is_end_of_generation = false;
    bool is_last = false;    // also set when the token limit is reached
    bool is_forced = false;  // given, not drawn: it closes the reasoning; there is no logprob
};
/// scheduler → slot: logprobs of further tokens of a score job.
struct ScoredTokens {
    TicketId ticket;
    std::vector<double> logprobs;
    std::vector<std::vector<model::TokenLogprob>> top;
    bool is_last = false;
};
/// scheduler → slot: ends now with what has been generated.
struct EndSequence {
    TicketId ticket;
    std::string finish;
    std::optional<Error> error;
};

/// scheduler → slot: this rung of the memory ladder is in force while the request runs.
struct MemoryRung {
    TicketId ticket;
    int rung = 0;
};

/// slot → scheduler: `n` further tokens may be generated (only slots that must see each token first, see
/// needs_verdict()). is_reasoning_open: said once, when thinking_budget tokens have been accepted: whether
/// the reasoning is still going on, so that it has to be closed.
struct SlotVerdict {
    SeatId seat;
    TicketId ticket;
    std::int64_t n = 0;
    std::optional<bool> is_reasoning_open;
};
/// slot → scheduler: the final event has been sent; the slot is free. `n_streamed`: token events sent.
struct SlotFreed {
    SeatId seat;
    TicketId ticket;
};
/// slot → new scheduler: what it is in the middle of. generated: every accepted token so far.
struct SlotReport {
    SeatId seat;
    JobPtr job;  // empty: idle
    std::vector<TokenId> generated;
    std::int64_t n_scored = 0;
    std::int64_t n_verdicts = 0;
    std::optional<bool> is_reasoning_open;  // as in SlotVerdict
    bool is_q4_0 = false;                   // SequenceInQ4_0 has been said
};
struct ReportSlot {};

/// To the scheduler: at most n sequences (1 … engine.slots) have a place on the die from here on; what is
/// above it is parked, none is dropped. `reason` is what status says. A new scheduler starts from
/// engine.slots: whoever limits says it again when the wiring names another one.
struct SetSlotLimit {
    int n = 0;
    std::string reason;
};

/// scheduler → die. One-way, in order: a checkpoint is there for what is sent after what takes it, and gone
/// for what is sent after its drop.
struct BindSlot {
    SlotId slot;
    model::SamplingParams sampling;
    int n_top = -1;
    CheckpointId from;            // goes on from there; 0: a fresh sequence
    std::vector<TokenId> recent;  // the last tokens of it, oldest first: the penalties' window
    bool is_q4_0 = false;         // a fresh one: its KV is kept so, whatever kv.format says
};
/// The KV of the slot's sequence is rewritten in q4_0 and kept so from here on.
struct KeepInQ4_0 {
    SlotId slot;
};
struct ReleaseSlot {
    SlotId slot;
};
/// Keep the slot's state as it is now; answered with CheckpointTaken.
struct KeepState {
    SlotId slot;
    CheckpointId checkpoint;
    bool is_exact = false;  // in f32, whatever format the prefix cache keeps states in
};
struct DropCheckpoints {
    std::vector<CheckpointId> checkpoints;
    bool is_all = false;  // a new scheduler knows none of them
};
enum class RunKind : std::uint8_t { prefill, sample, score };
struct PlannedRun {
    SlotId slot;
    RunKind kind = RunKind::prefill;
    std::int32_t pos = 0;
    std::vector<TokenId> tokens;
    std::uint64_t sample_index = 0;  // sample: i of the token to draw
    std::vector<TokenId>
        targets;             // score: the token whose logprob row t gives; size tokens.size() or one less
    std::int32_t n_top = 0;  // score
};
struct StepPlan {
    std::uint64_t step = 0;
    std::vector<PlannedRun> runs;
    /// Not 0: the only run begins or goes on in parts (model::Executor::step_in_parts), for about so long.
    double part_ms = 0;
};
struct RunResult {
    SlotId slot;
    std::string error;           // not empty: this run failed, its slot's state is not to be used again
    bool is_unrestored = false;  // the slot has no sequence, or not the one of its BindSlot: bind it anew
    bool is_exhausted = false;   // no room for its KV or its state: can be repeated when there is some
    bool is_begun = false;       // in parts, and there is more to do; nothing came out yet
    bool is_finite = true;
    TokenId token = -1;
    float logprob = 0;
    std::vector<model::TokenLogprob> top;
    std::vector<double> scored;
    std::vector<std::vector<model::TokenLogprob>> scored_top;
};
/// scheduler → die: a state from disk, as if it had been taken here. Of this host only, like the answer to
/// GetCheckpoint: what is large and immutable is not copied.
struct AdoptCheckpoint {
    CheckpointId checkpoint;
    model::CheckpointPtr state;
};
/// scheduler → die: answered with the state, or null.
struct GetCheckpoint {
    CheckpointId checkpoint;
};
/// scheduler → die: have the packed copies of weights that the settings ask for, or none. Logits do not
/// depend on it.
struct KeepPacked {
    bool is_packed = true;
};
/// scheduler → die: give unused memory back to the system.
struct TrimMemory {};
/// die → scheduler.
struct CheckpointTaken {
    CheckpointId checkpoint;
    bool is_kept = false;
    std::vector<std::uint64_t> kv_blocks;  // model::Checkpoint::kv_blocks
};
/// die → scheduler.
struct StepDone {
    std::uint64_t step = 0;
    std::int64_t n_rows = 0;  // done; those of a run in parts once it is
    double elapsed_ms = 0;
    double longest_unit_ms = 0;   // not 0: a run in parts is done; of all of it
    std::vector<RunResult> runs;  // one for each of the plan
    std::uint64_t kv_used_bytes = 0;
    std::uint64_t kv_pool_bytes = 0;
    std::uint64_t repack_bytes = 0;
};
/// die → itself, behind what waits for it: time to pack some more weights.
struct PackWeights {};
/// die → supervisor → scheduler, when all is packed, or as much as there was memory for, or nothing any more.
struct WeightsPacked {
    std::uint64_t n_bytes = 0;
};
/// die → supervisor, once after it was spawned: `error` set means that it cannot start.
struct DieReady {
    std::optional<Error> error;
};

/// What the supervisor tells everybody whenever a handle changes.
struct Wiring;
using WiringPtr = std::shared_ptr<const Wiring>;

/// What the memory ladder has done to an engine since its scheduler was started.
struct MemoryCounters {
    std::uint64_t n_rungs_up = 0, n_rungs_down = 0;
    std::uint64_t n_refused = 0;            // requests, because admission was closed
    std::uint64_t cache_bytes_dropped = 0;  // of the prefix cache, when a rung came into force
    std::uint64_t n_unpacked = 0;           // times that packed weights were dropped
};

/// For status: a consistent picture of one engine.
struct EngineSnapshot {
    std::string state;                          // loading | ready | degraded
    int n_slots = 0, n_busy = 0, n_parked = 0;  // n_slots: that may be used now
    std::string slots_reason = "configured";    // why it is that many
    std::size_t n_waiting = 0, queue_limit = 0;
    std::optional<std::int64_t> last_step_age_ms, last_token_age_ms;
    std::uint64_t kv_used_bytes = 0, kv_pool_bytes = 0, repack_bytes = 0;
    std::uint64_t prompt_tokens = 0, cached_tokens = 0, completion_tokens = 0;
    std::uint64_t cache_bytes = 0, cache_limit_bytes = 0, cache_hits = 0, cache_misses = 0;
    std::uint64_t cache_disk_bytes = 0;
    MemoryLevel memory_level = MemoryLevel::ok;
    int memory_rung = 0;
    MemoryCounters memory_counters;
    std::int64_t longest_gap_ms = 0, longest_gap_last_minute_ms = 0;  // between two tokens of a stream
    StepRows step_rows;
    StepSeconds step_seconds;
    std::uint64_t n_ended_without_credit = 0;
    std::vector<TicketId> queued, running;
    bool is_step_hanging = false;  // the step under way has taken longer than die.hang_ms
};
struct GetSnapshot {};

/// scheduler → gateway that has just been started: the tickets it does not know of.
struct TicketList {
    std::vector<std::pair<JobPtr, bool>> jobs;
};  // bool: bound to a slot
struct ListTickets {};

/// A session as it lies on disk.
struct SavedState {
    std::string space, name, owner;
    std::vector<TokenId> tokens;
    std::uint64_t bytes = 0;
    std::int64_t saved_ms = 0;  // of the file's clock
};
struct SaveState {
    SavedState what;  // bytes and saved_ms are the store's to say
    model::CheckpointPtr state;
};
struct LoadState {
    std::string space, name;
};
struct DropState {
    std::string space, name;
};
struct ListStates {};
using SaveStatePtr = std::shared_ptr<const SaveState>;
using StoreAnswer = std::shared_ptr<const Status>;
using LoadAnswer = std::shared_ptr<const Result<model::StateFile>>;
using SavedStates = std::shared_ptr<const std::vector<SavedState>>;  // newest first

/// scheduler → store: write a checkpoint into a file of its own. The store sets file, bytes and used_ms.
struct SpillState {
    StateOnDisk what;
    model::CheckpointPtr state;
};
/// scheduler → store: read one. What turns out to be damaged is removed.
struct LoadSpilled {
    std::string file;
};
struct DropSpilled {
    std::vector<std::string> files;
};
struct ListSpilled {};
using SpillStatePtr = std::shared_ptr<const SpillState>;
using SpillAnswer = std::shared_ptr<const Result<StateOnDisk>>;
using SpilledStates = std::shared_ptr<const std::vector<StateOnDisk>>;

/// supervisor → scheduler, when nothing runs any more: write what memory holds and the disk does not, the
/// worthiest first, for at most that long. Answered with the number written.
struct SpillAll {
    std::chrono::milliseconds within{0};
};

/// gateway → scheduler: a `sessions` or `session.*` request.
struct SessionCommand {
    Identity who;
    bool is_admin = false;
    SessionRequest request;
};
using SessionCommandPtr = std::shared_ptr<const SessionCommand>;
using SessionAnswer = std::shared_ptr<const Result<Json>>;

/// Refuse new work; cancel what is still running after `timeout`. Absent: daemon.drain_s.
struct BeginDrain {
    std::optional<std::chrono::milliseconds> timeout;
};
struct DrainTick {};
/// Read the configuration file again; a dry run only says what would change.
struct ReloadConfig {
    bool is_dry_run = false;
};
/// supervisor → itself: time to see whether steps make progress.
struct AliveTick {};
/// Live requests, whatever their phase.
struct CountLive {};
struct Shutdown {};
struct Tick {};
using MemoryReadingsPtr = std::shared_ptr<const MemoryReadings>;
using SnapshotPtr = std::shared_ptr<const EngineSnapshot>;
using TicketListPtr = std::shared_ptr<const TicketList>;
using PortEventPtr = std::shared_ptr<const PortEvent>;
using ReloadOutcomePtr = std::shared_ptr<const ReloadOutcome>;

// ---- interfaces
// -----------------------------------------------------------------------------------------------

/// Owns the client table: which connection asked for what. Everything from the socket arrives here.
using GatewayActor =
    caf::typed_actor<caf::reacts_to<PortEventPtr>, caf::reacts_to<WiringPtr>, caf::reacts_to<TicketAdmitted>,
                     caf::reacts_to<TicketBound>, caf::reacts_to<TicketFinished>, caf::reacts_to<BeginDrain>,
                     caf::reacts_to<Tick>, caf::reacts_to<SettingsPtr>,
                     caf::replies_to<CountLive>::with<std::uint64_t>>;

/// Turns requests into token ids (templates, tokenizer, defaults, range checks) and answers the text-only
/// ops, so that neither the gateway nor the scheduler waits for a long prompt. Cancels of unprepared requests
/// pass through it, behind the request they concern.
using TextActor =
    caf::typed_actor<caf::reacts_to<JobPtr>, caf::reacts_to<CancelTicket>, caf::reacts_to<AddCredit>,
                     caf::reacts_to<PauseTicket>, caf::reacts_to<WiringPtr>, caf::reacts_to<SettingsPtr>>;

/// Owns the admission queue, the slot table and step planning of one engine.
using SchedulerActor = caf::typed_actor<
    caf::reacts_to<JobPtr>, caf::reacts_to<CancelTicket>, caf::reacts_to<AddCredit>,
    caf::reacts_to<PauseTicket>, caf::reacts_to<StepDone>, caf::reacts_to<SlotVerdict>,
    caf::reacts_to<SlotFreed>, caf::reacts_to<SlotReport>, caf::reacts_to<WiringPtr>, caf::reacts_to<Tick>,
    caf::reacts_to<SettingsPtr>, caf::reacts_to<CheckpointTaken>, caf::reacts_to<MemoryOrders>,
    caf::reacts_to<WeightsPacked>, caf::reacts_to<SetSlotLimit>,
    caf::replies_to<GetSnapshot>::with<SnapshotPtr>, caf::replies_to<SessionCommandPtr>::with<SessionAnswer>,
    caf::replies_to<SpillAll>::with<std::uint64_t>, caf::replies_to<ListTickets>::with<TicketListPtr>>;

/// Owns one sequence's text side: detokeniser, parser, its client; running or parked alike.
using SlotActor =
    caf::typed_actor<caf::reacts_to<BeginSequence>, caf::reacts_to<PromptCached>,
                     caf::reacts_to<SequenceParked>, caf::reacts_to<SequenceInQ4_0>,
                     caf::reacts_to<AcceptedToken>, caf::reacts_to<ScoredTokens>, caf::reacts_to<EndSequence>,
                     caf::reacts_to<ReportSlot>, caf::reacts_to<MemoryRung>, caf::reacts_to<WiringPtr>>;

/// Owns one device: executor, states, checkpoints, sampling. Steps one plan at a time, in order.
using DieActor =
    caf::typed_actor<caf::reacts_to<BindSlot>, caf::reacts_to<KeepInQ4_0>, caf::reacts_to<ReleaseSlot>,
                     caf::reacts_to<KeepState>, caf::reacts_to<DropCheckpoints>,
                     caf::reacts_to<AdoptCheckpoint>,
                     caf::replies_to<GetCheckpoint>::with<model::CheckpointPtr>, caf::reacts_to<StepPlan>,
                     caf::reacts_to<PackWeights>, caf::reacts_to<KeepPacked>, caf::reacts_to<TrimMemory>>;

/// Owns the configuration file: reads and checks it again when asked. Reading may block; it has a thread of
/// its own.
using ConfigActor = caf::typed_actor<caf::replies_to<ReloadConfig>::with<ReloadOutcomePtr>>;

/// Owns the folder of saved sessions and spilled checkpoints. Reading and writing block; it has a thread of
/// its own.
using StoreActor = caf::typed_actor<
    caf::replies_to<SaveStatePtr>::with<StoreAnswer>, caf::replies_to<LoadState>::with<LoadAnswer>,
    caf::replies_to<DropState>::with<StoreAnswer>, caf::replies_to<ListStates>::with<SavedStates>,
    caf::replies_to<SpillStatePtr>::with<SpillAnswer>, caf::replies_to<LoadSpilled>::with<LoadAnswer>,
    caf::reacts_to<DropSpilled>, caf::replies_to<ListSpilled>::with<SpilledStates>>;

/// Owns the level and the rung of the memory ladder; the scheduler carries its orders out.
using MemoryLadderActor = caf::typed_actor<caf::reacts_to<MemoryReadingsPtr>, caf::reacts_to<WiringPtr>,
                                           caf::reacts_to<SettingsPtr>>;

/// Owns the spawn tree, the restart policy and the settings in force.
using SupervisorActor =
    caf::typed_actor<caf::reacts_to<DieReady>, caf::reacts_to<WeightsPacked>, caf::reacts_to<Shutdown>,
                     caf::reacts_to<BeginDrain>, caf::reacts_to<DrainTick>, caf::reacts_to<AliveTick>,
                     caf::replies_to<ReloadConfig>::with<ReloadOutcomePtr>>;

struct Wiring {
    GatewayActor gateway;
    TextActor text;
    SchedulerActor scheduler;
    std::vector<SlotActor> slots;      // by SeatId
    DieActor die;                      // empty while there is none
    std::uint64_t die_generation = 0;  // grows with each replacement: states on the die are gone
    StoreActor store;
    MemoryLadderActor memory_ladder;
    SupervisorActor supervisor;
};

// ---- inspection: what goes to and from a die is serialisable
// ----------------------------------------------------

template <class Inspector>
auto inspect(Inspector& f, BindSlot& x) {
    return f(caf::meta::type_name("BindSlot"), x.slot, x.sampling, x.n_top, x.from, x.recent, x.is_q4_0);
}
template <class Inspector>
auto inspect(Inspector& f, KeepInQ4_0& x) {
    return f(caf::meta::type_name("KeepInQ4_0"), x.slot);
}
template <class Inspector>
auto inspect(Inspector& f, ReleaseSlot& x) {
    return f(caf::meta::type_name("ReleaseSlot"), x.slot);
}
template <class Inspector>
auto inspect(Inspector& f, KeepState& x) {
    return f(caf::meta::type_name("KeepState"), x.slot, x.checkpoint, x.is_exact);
}
template <class Inspector>
auto inspect(Inspector& f, DropCheckpoints& x) {
    return f(caf::meta::type_name("DropCheckpoints"), x.checkpoints, x.is_all);
}
template <class Inspector>
auto inspect(Inspector& f, CheckpointTaken& x) {
    return f(caf::meta::type_name("CheckpointTaken"), x.checkpoint, x.is_kept, x.kv_blocks);
}
template <class Inspector>
auto inspect(Inspector& f, KeepPacked& x) {
    return f(caf::meta::type_name("KeepPacked"), x.is_packed);
}
template <class Inspector>
auto inspect(Inspector& f, TrimMemory&) {
    return f(caf::meta::type_name("TrimMemory"));
}
template <class Inspector>
auto inspect(Inspector& f, PlannedRun& x) {
    return f(caf::meta::type_name("PlannedRun"), x.slot, x.kind, x.pos, x.tokens, x.sample_index, x.targets,
             x.n_top);
}
template <class Inspector>
auto inspect(Inspector& f, StepPlan& x) {
    return f(caf::meta::type_name("StepPlan"), x.step, x.runs, x.part_ms);
}
template <class Inspector>
auto inspect(Inspector& f, RunResult& x) {
    return f(caf::meta::type_name("RunResult"), x.slot, x.error, x.is_unrestored, x.is_exhausted, x.is_begun,
             x.is_finite, x.token, x.logprob, x.top, x.scored, x.scored_top);
}
template <class Inspector>
auto inspect(Inspector& f, StepDone& x) {
    return f(caf::meta::type_name("StepDone"), x.step, x.n_rows, x.elapsed_ms, x.longest_unit_ms, x.runs,
             x.kv_used_bytes, x.kv_pool_bytes, x.repack_bytes);
}

}  // namespace pantheon::actors

namespace pantheon::model {

template <class Inspector>
auto inspect(Inspector& f, TokenLogprob& x) {
    return f(caf::meta::type_name("TokenLogprob"), x.token, x.logprob);
}
template <class Inspector>
auto inspect(Inspector& f, SamplingParams& x) {
    return f(caf::meta::type_name("SamplingParams"), x.temperature, x.top_k, x.top_p, x.min_p,
             x.repeat_penalty, x.presence_penalty, x.frequency_penalty, x.logit_bias, x.seed);
}

}  // namespace pantheon::model

// Everything else stays inside one process and is passed by value or shared pointer.
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::JobPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::PortEventPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::WiringPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::SnapshotPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::TicketListPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::CancelTicket)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::AddCredit)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::PauseTicket)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::TicketAdmitted)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::TicketBound)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::TicketFinished)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::BeginSequence)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::PromptCached)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::SequenceParked)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::SequenceInQ4_0)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::SetSlotLimit)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::SessionCommandPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::SessionAnswer)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::SaveStatePtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::LoadState)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::DropState)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::ListStates)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::StoreAnswer)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::LoadAnswer)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::SavedStates)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::SpillStatePtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::LoadSpilled)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::DropSpilled)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::ListSpilled)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::SpillAnswer)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::SpilledStates)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::SpillAll)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::AdoptCheckpoint)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::GetCheckpoint)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::model::CheckpointPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::AcceptedToken)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::ScoredTokens)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::EndSequence)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::SlotVerdict)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::SlotFreed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::SlotReport)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::ReportSlot)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::PackWeights)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::WeightsPacked)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::DieReady)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::GetSnapshot)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::ListTickets)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::BeginDrain)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::DrainTick)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::ReloadConfig)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::AliveTick)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::SettingsPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::ReloadOutcomePtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::CountLive)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::Shutdown)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::Tick)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::MemoryReadingsPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::MemoryOrders)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pantheon::actors::MemoryRung)

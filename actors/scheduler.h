// The actor that owns the admission queue, the slot table and step planning of one engine.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "actors/admission_queue.h"
#include "actors/cache/disk_index.h"
#include "actors/cache/prefix_cache.h"
#include "actors/messages.h"
#include "actors/metrics/gap_meter.h"
#include "actors/parking.h"
#include "actors/step_pacer.h"
#include "actors/step_planner.h"

namespace pantheon::actors {

/// One sequence under way, placed on the die or parked, as the scheduler sees it.
struct RunningSequence {
    JobPtr job;
    std::optional<SlotId> place;  // the die's slot that holds its state; nothing: parked
    std::vector<TokenId> generated;
    std::int64_t n_fed = 0;  // tokens of prompt + generated evaluated on the present die
    PlannedRows planned;     // of the step under way
    std::optional<PlannedRows>
        begun;                  // a run in parts: the die is amid it, nothing else can be done with the state
    bool is_started = false;    // the present die has its state; until then another's checkpoint may serve
    CheckpointId resumed_from;  // 0: from nothing
    std::optional<std::int64_t>
        n_cached;                      // tokens of the prompt taken from a checkpoint, as told to its slot
    std::vector<std::int64_t> marks;   // where in the prompt its state is to be kept, ascending
    CheckpointId last_checkpoint;      // the newest of it, for what they share
    bool is_final_state_kept = false;  // or has been tried
    /// The file that it waits for, empty: the list of files; nothing: it does not wait.
    std::optional<std::string> awaited_file;
    bool may_load = true;     // a checkpoint from disk; false once that has failed
    GapClock gap_clock;       // between its tokens
    bool is_cut_off = false;  // told to end before its reply did
    std::int64_t n_scored =
        0;  // score jobs: results handed to the slot; more than n_fed after a replaced die
    std::int64_t n_verdicts = 0;  // further tokens the slot has allowed (only if it must see each one)
    std::int64_t n_credit = 0;    // token events the client has granted so far (only if it uses credit)
    std::optional<bool> is_reasoning_open;  // when its thinking budget had been used; absent: not known yet
    bool is_paused = false;
    CheckpointId parked_as;  // parked: the die keeps its state, n_fed tokens, under this name; 0: nobody does
    bool is_room_reserved = false;   // for that, in the prefix cache's budget
    std::int64_t n_reserved = 0;     // tokens that the room is for
    bool is_park_due = false;        // once the step under way is done
    bool was_parked = false;         // its slot has been told
    bool is_q4_0 = false;            // its KV is kept so, whatever kv.format says: by rung 4 of the ladder
    int n_waiting_ticks = 0;         // that its place has waited for its client
    int n_ticks_without_credit = 0;  // placed or parked
    bool is_in_flight = false;       // rows of it are in the step under way
    /// Its state on the die is not that of n_fed tokens.
    bool is_amid_run() const { return is_in_flight || begun; }
    bool is_ended = false;  // its slot has been told the last token or to end; waiting for SlotFreed
    std::optional<EndSequence> end_after_step;  // cancelled while in flight

    bool is_score() const { return job->prepared->kind == Prepared::Kind::score; }
    /// Tokens that exist: prompt and reply. A score job needs no logits after its last token.
    std::int64_t n_known() const;
    TokenId token(std::int64_t i) const;
    bool may_sample() const;
    /// The next token where it is given and not drawn, because reasoning has used its budget.
    std::optional<TokenId> forced_token() const;
    /// Its client does not read or has granted no more credit.
    bool is_held_back() const;
    /// So that nothing is left to compute.
    bool waits_for_client() const { return is_held_back() && n_fed >= n_known() - 1; }
    /// A stream whose next token is only a step away, or a word of its slot and a step.
    bool is_decoding() const;
    /// The client, the limits and its slot allow one more token.
    bool may_grow() const;
    std::vector<TokenId> tokens(std::int64_t begin, std::int64_t end) const;
};

/// Everything is being written because the daemon is about to end.
struct SpillRound {
    std::vector<CheckpointId> rest;  // the worthiest last
    Clock::time_point end;
    std::uint64_t n_written = 0;
    std::function<void(std::uint64_t)> done;
};

struct SchedulerState {
    static inline const char* name = "scheduler";

    SchedulerActor::pointer self = nullptr;
    SettingsPtr settings;
    AdmissionQueue queue{0};
    std::vector<std::optional<RunningSequence>> seats;  // by SeatId
    int slot_limit = 0;                                 // places that may be taken; at most engine.slots
    std::string slot_limit_reason = "configured";
    std::uint64_t n_ever_parked = 0;
    std::optional<std::int64_t> kv_ceiling;  // of placed sequences: the die had no room for more
    int n_exhausted_alone = 0;  // steps for which there was none with one sequence alone, since a token
    int n_hold_ticks = 0;       // as long as nobody gets a place
    WiringPtr wiring;
    StepPacer pacer;
    PrefixCache cache;  // of the checkpoints on the die
    DiskIndex disk;     // of the checkpoints that the store has in files

    std::uint64_t next_step = 1;
    std::uint64_t next_parked = 1;  // names of parked states
    std::optional<std::uint64_t> step_in_flight;
    Clock::time_point step_started;
    StepShape step_shape;  // of the step under way
    bool is_hang_reported = false;
    std::optional<Clock::time_point> last_step, last_token;
    bool is_tick_pending = false;
    std::vector<bool> is_report_awaited;  // after a restart: slots that have not said yet what they hold
    std::unordered_map<TicketId, int> quiet_ticks;  // requests for which no token can come: since how many
    std::unordered_map<TicketId, std::int64_t> early_credit;  // granted before the sequence was in a slot

    bool is_disk_listed = false;    // the store has said what there is
    std::set<std::string> loading;  // files that the store is reading
    int n_spilling = 0;             // states on their way to the store
    bool is_disk_failing = false;   // the last write was refused: said once
    std::optional<SpillRound> spill_round;

    std::vector<SavedState> saved;  // sessions on disk, newest first, as the store has said last

    MemoryOrders orders;                            // of the memory ladder
    std::optional<std::uint64_t> cache_held_bytes;  // what the cache held when it had to stop growing
    MemoryCounters memory_counters;

    std::uint64_t kv_used_bytes = 0, kv_pool_bytes = 0, repack_bytes = 0;
    std::uint64_t n_prompt_tokens = 0, n_cached_tokens = 0, n_completion_tokens = 0;
    double mean_request_ms = 0;  // for retry_after_ms
    GapMeter gaps;               // between two tokens of a stream
    StepRows step_rows;
    StepSeconds step_seconds;
    std::uint64_t n_ended_without_credit = 0;

    bool has_die() const { return wiring && wiring->die; }
    bool is_recovering() const;

    void submit(const JobPtr& job);
    void cancel(const CancelTicket& message);
    void add_credit(const AddCredit& message);
    void pause(const PauseTicket& message);
    void on_step_done(const StepDone& done);
    void on_checkpoint(const CheckpointTaken& message);
    void adopt(const SettingsPtr& next);
    void limit_disk();  // as the settings in force say
    void set_slot_limit(const SetSlotLimit& message);
    void on_orders(const MemoryOrders& next);
    caf::result<SessionAnswer> session_command(const SessionCommandPtr& command);
    caf::result<std::uint64_t> spill_all(const SpillAll& message);
    void on_verdict(const SlotVerdict& message);
    void on_freed(const SlotFreed& message);
    void on_report(const SlotReport& report);
    void on_wiring(const WiringPtr& next);
    void tick();
    EngineSnapshot snapshot() const;
    TicketList tickets() const;
    int most_places() const;

  private:
    void dispatch();  // places are given, then the next step starts
    void begin(std::size_t index, SlotId place, JobPtr job);
    void start_step();
    PlannedStep plan_rows();
    ReadLimits read_limits(int n_decode_rows, int n_decoding) const;
    int n_decoding() const;
    void apply(RunResult& result, const Clock::time_point now);
    void accept(std::size_t index, AcceptedToken token);
    void close_reasoning(std::size_t index);
    void leave(std::size_t index);
    void end(std::size_t index, std::string finish, std::optional<Error> error);
    /// Answers a job that no slot holds.
    void finish_unbound(const JobPtr& job, const std::string& finish, std::optional<Error> error);
    std::optional<std::size_t> find(TicketId ticket) const;
    std::optional<std::size_t> find_placed(SlotId place) const;
    void report_progress();
    void arm_tick();
    void end_expired(Clock::time_point now);
    std::int64_t retry_after_ms() const;
    void take_early_credit(RunningSequence& sequence);
    // scheduler_meters.cpp
    void measure(const StepDone& done, Clock::time_point now);
    void add_meters(EngineSnapshot& snapshot) const;
    // scheduler_parking.cpp
    void give_places();
    void park(std::size_t index);
    void update_gap_clock(RunningSequence& sequence);
    void park_after_step();
    bool may_park(const RunningSequence& sequence) const;
    void resume(std::size_t index, SlotId place);
    void forget_parked_state(RunningSequence& sequence);
    void count_waiting_ticks();
    void free_a_seat();
    std::vector<PlacedOrParked> places() const;
    std::optional<SlotId> free_place() const;
    std::optional<std::size_t> free_seat() const;
    // scheduler_kv.cpp
    std::int64_t kv_bytes(bool is_q4_0, std::int64_t n_rows, std::int64_t n_step) const;
    std::int64_t kv_bytes(const RunningSequence& sequence) const;
    std::int64_t kv_bytes(const Prepared& waiting) const;
    std::int64_t kv_limit() const;
    std::int64_t kv_bytes_placed() const;
    bool waits_for_room() const;
    void on_exhausted();
    void end_hold();
    void keep_in_q4_0(std::size_t index);
    void convert_running();
    // scheduler_cache.cpp
    void start_sequence(std::size_t index);
    void start_again(std::size_t index);
    std::int64_t next_mark(const RunningSequence& sequence) const;
    bool is_keepable(std::int64_t n_tokens) const;
    void keep_state(RunningSequence& sequence);
    void keep_final_state(std::size_t index);
    bool uses_cache(const RunningSequence& sequence) const;
    bool may_resume(const RunningSequence& sequence) const;
    void send_drops();
    // scheduler_disk.cpp
    void list_disk();
    bool await_disk(RunningSequence& sequence);
    bool load_from_disk(const std::string& file);
    bool adopt_from_disk(const std::string& file, const model::StateFile& state);
    void stop_waiting(const std::string& file, bool may_load_again);
    void drop_from_disk(const std::string& file);
    void send_disk_drops();
    void spill_some();
    void spill(CheckpointId id, const CacheSpace& space, std::vector<TokenId> tokens);
    void spilled(CheckpointId id, const StateOnDisk& what, const Result<StateOnDisk>& written);
    void set_copy(CheckpointId id, PrefixCache::Copy copy);
    // scheduler_pressure.cpp
    bool refuse_for_memory(const JobPtr& job);
    void drop_parked_states();
    void tell_rung(const RunningSequence& sequence, std::size_t index);
    void squeeze_cache();
    void squeeze_die(const MemoryOrders& before);
    void add_memory(EngineSnapshot& snapshot) const;
    // scheduler_sessions.cpp
    struct SessionKey {
        CacheSpace space;
        std::string name;
    };
    const SavedState* find_saved(const SessionKey& key) const;
    Json list_sessions(const CacheSpace& space, const CacheSpace& who) const;
    void drop_session(const SessionKey& key, const CacheSpace& who, bool is_admin,
                      std::function<void(Result<Json>)> answer);
    void save_session(const SessionKey& key, std::function<void(Result<Json>)> answer);
    void load_session(const SessionKey& key, std::function<void(const Status&)> done);
    Status adopt_state(const SessionKey& key, const model::StateFile& file);
    void refresh_saved(std::function<void(const Status&)> done);
    void load_saved();
    void load_next(const std::shared_ptr<std::vector<SessionKey>>& keys);
    bool is_hanging() const;
    void die_replaced();
    void slot_replaced(std::size_t index);
};

/// States on their way to the disk at once: what they take beside the prefix cache's budget is bounded by it.
inline constexpr int kMostSpilling = 2;

inline constexpr std::chrono::milliseconds kTick{250};  // only while requests are running or waiting

/// Parked states have names that the prefix cache never gives.
inline constexpr std::uint64_t kParkedNames = std::uint64_t{1} << 63;
inline bool is_parked_name(CheckpointId id) {
    return (id.value & kParkedNames) != 0;
}

/// Whose checkpoints a request of this client and mode reads and feeds.
CacheSpace space_of(const Identity& who, CacheMode mode);

/// is_restart: the predecessor died; slots are asked what they hold before anything is planned.
SchedulerActor::behavior_type scheduler(SchedulerActor::stateful_pointer<SchedulerState> self,
                                        SettingsPtr settings, bool is_restart);

}  // namespace pantheon::actors

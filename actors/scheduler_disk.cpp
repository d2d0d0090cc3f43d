// The scheduler's side of checkpoints on disk: what is written before memory loses it, and what a sequence
// waits for because it lies there. Nothing here blocks; whatever fails, sequences are evaluated from their
// tokens.
#include <algorithm>
#include <utility>

#include "actors/scheduler.h"

namespace pantheon::actors {
namespace {

constexpr std::chrono::seconds kDieTimeout{60};     // behind the step under way
constexpr std::chrono::seconds kWriteTimeout{120};  // a large state on a slow disk
constexpr std::chrono::seconds kReadTimeout{60};    // sequences wait
constexpr std::chrono::seconds kListTimeout{30};    // sequences wait

constexpr const char* kListing = "";  // as the name of an awaited file

Error no_answer(std::string_view who) {
    return Error(Code::unavailable, "checkpoint: the " + std::string(who) + " does not answer");
}

}  // namespace

/// Only where states are kept and there is a folder for them.
void SchedulerState::limit_disk() {
    const CacheSettings& wanted = settings->cache;
    const bool is_possible = !wanted.dir.empty() && settings->engine.codec && wanted.limit_bytes > 0;
    disk.set_limit(is_possible ? wanted.disk_bytes : 0);
    cache.set_saving(disk.is_enabled());
    send_disk_drops();
}

void SchedulerState::list_disk() {
    self->request(wiring->store, kListTimeout, ListSpilled{})
        .then(
            [this](const SpilledStates& states) {
                disk.reset(*states);
                send_disk_drops();
                is_disk_listed = true;
                stop_waiting(kListing, true);
            },
            [this](const caf::error& error) {
                is_disk_listed = true;  // as far as sequences are concerned
                stop_waiting(kListing, true);
                // A store that is gone is replaced, and asked then.
                if (error == caf::sec::request_timeout) list_disk();
            });
}

// ---- from disk
// -------------------------------------------------------------------------------------------------

/// Whether the sequence has to wait before it can start: a file holds more of its prompt than memory does.
bool SchedulerState::await_disk(RunningSequence& sequence) {
    if (!disk.is_enabled() || !sequence.may_load || !may_resume(sequence)) return false;
    if (!is_disk_listed) {
        sequence.awaited_file = kListing;
        return true;
    }
    const auto& prompt = sequence.job->prepared->prompt;
    const CacheSpace space = space_of(sequence.job->who, sequence.job->prepared->cache);
    const DiskIndex::Lookup found = disk.look(space, prompt);
    if (found.file.empty() || found.length <= cache.look(space, prompt).length) return false;
    if (!loading.contains(found.file) && !load_from_disk(found.file)) {
        sequence.may_load = false;
        return false;
    }
    sequence.awaited_file = found.file;
    return true;
}

/// Room is made before the file is read. False: there is none.
bool SchedulerState::load_from_disk(const std::string& file) {
    const auto n_tokens = static_cast<std::int64_t>(disk.describe(file)->tokens.size());
    if (!has_die() || !cache.reserve(n_tokens)) return false;
    send_drops();
    loading.insert(file);
    disk.use(file);
    const std::uint64_t generation = wiring->die_generation;
    self->request<caf::message_priority::high>(wiring->store, kReadTimeout, LoadSpilled{file})
        .then(
            [this, file, n_tokens, generation](const LoadAnswer& state) {
                cache.unreserve(n_tokens);
                loading.erase(file);
                if (*state) {
                    const bool is_there =
                        wiring->die_generation != generation || adopt_from_disk(file, **state);
                    return stop_waiting(file, is_there);
                }
                log_warning(name, state->error().to_string());
                const bool is_lost = state->error().code() != Code::resource_exhausted;
                if (is_lost) drop_from_disk(file);
                stop_waiting(file, is_lost);
            },
            [this, file, n_tokens](const caf::error&) {
                cache.unreserve(n_tokens);
                loading.erase(file);
                log_warning(name, no_answer("store").to_string());
                stop_waiting(file, false);
            });
    return true;
}

/// Gives the state to the die. False: there is no room for it after all.
bool SchedulerState::adopt_from_disk(const std::string& file, const model::StateFile& state) {
    const auto known = disk.describe(file);
    if (!known) return true;  // has had to go meanwhile
    if (known->tokens != state.header.tokens || known->space != state.header.space) {
        log_warning(name, file + ": has changed since it was listed");
        drop_from_disk(file);
        return true;
    }
    if (!has_die()) return true;  // the next one may be given it
    if (cache.at(known->space, known->tokens) != CheckpointId()) return true;
    const auto id = cache.add(known->space, known->tokens, {}, /*is_asked_for=*/true);
    send_drops();
    if (!id) return false;
    self->send(wiring->die, AdoptCheckpoint{*id, state.state});
    cache.confirm(*id, state.state->kv_blocks());
    set_copy(*id, PrefixCache::Copy::saved);
    return true;
}

void SchedulerState::stop_waiting(const std::string& file, bool may_load_again) {
    for (auto& sequence : seats) {
        if (!sequence || sequence->awaited_file != file) continue;
        sequence->awaited_file.reset();
        if (!may_load_again) sequence->may_load = false;
    }
    if (wiring) dispatch();
}

void SchedulerState::drop_from_disk(const std::string& file) {
    disk.drop(file);
    send_disk_drops();
}

void SchedulerState::send_disk_drops() {
    DropSpilled message;
    for (const StateOnDisk& state : disk.take_dropped()) {
        message.files.push_back(state.file);
        cache.set_copy(cache.at(state.space, state.tokens), PrefixCache::Copy::none);
    }
    if (wiring && !message.files.empty()) self->send(wiring->store, std::move(message));
}

// ---- to disk
// ---------------------------------------------------------------------------------------------------

/// Writes ahead of need, a few at a time.
void SchedulerState::spill_some() {
    while (has_die() && n_spilling < kMostSpilling) {
        std::optional<CheckpointId> id;
        if (spill_round) {
            if (Clock::now() >= spill_round->end) spill_round->rest.clear();
            if (spill_round->rest.empty()) break;
            id = spill_round->rest.back();
            spill_round->rest.pop_back();
            if (!cache.contains(*id)) continue;
        } else {
            id = cache.next_to_save();
            if (!id) break;
        }
        spill(*id, cache.space_of(*id), cache.tokens_of(*id));
    }
    if (!spill_round || n_spilling > 0 || (has_die() && !spill_round->rest.empty())) return;
    const SpillRound round = *std::exchange(spill_round, std::nullopt);
    round.done(round.n_written);
}

/// The die gives the state, the store writes it; a step neither waits for that nor is delayed by it.
void SchedulerState::spill(CheckpointId id, const CacheSpace& space, std::vector<TokenId> tokens) {
    using Copy = PrefixCache::Copy;
    model::StateHeader header;
    header.fingerprint = settings->model.fingerprint;
    header.space = header.owner = space;
    header.tokens = tokens;
    auto message = std::make_shared<SpillState>();
    message->what.space = space;
    message->what.bytes = model::state_file_bytes(std::move(header), *settings->engine.codec);
    message->what.tokens = std::move(tokens);
    if (disk.at(space, message->what.tokens)) return cache.set_copy(id, Copy::saved);
    const bool has_room = disk.reserve(space, message->what.tokens, message->what.bytes);
    send_disk_drops();
    if (!has_room) return set_copy(id, Copy::refused);
    cache.set_copy(id, Copy::underway);
    ++n_spilling;
    self->request(wiring->die, kDieTimeout, GetCheckpoint{id})
        .then(
            [this, id, message](const model::CheckpointPtr& state) {
                if (!state)
                    return spilled(id, message->what, Error(Code::not_found, "checkpoint: the die lacks it"));
                message->state = state;
                self->request(wiring->store, kWriteTimeout, SpillStatePtr(message))
                    .then([this, id,
                           message](const SpillAnswer& written) { spilled(id, message->what, *written); },
                          [this, id, message](const caf::error&) {
                              spilled(id, message->what, no_answer("store"));
                          });
            },
            [this, id, message](const caf::error&) { spilled(id, message->what, no_answer("die")); });
}

void SchedulerState::spilled(CheckpointId id, const StateOnDisk& what, const Result<StateOnDisk>& written) {
    --n_spilling;
    if (written) {
        disk.add(*written);
        if (spill_round) ++spill_round->n_written;
    } else {
        disk.cancel(what.space, what.tokens);
        if (!is_disk_failing) log_warning(name, written.error().to_string());
    }
    is_disk_failing = !written;
    send_disk_drops();
    const bool is_there = written && disk.at(what.space, what.tokens);
    set_copy(id, is_there ? PrefixCache::Copy::saved : PrefixCache::Copy::refused);
    send_drops();
    spill_some();
}

/// What had to wait for its copy before it could go may go now.
void SchedulerState::set_copy(CheckpointId id, PrefixCache::Copy copy) {
    const std::uint64_t before = cache.bytes();
    cache.set_copy(id, copy);
    if (!orders.cache_may_grow)
        memory_counters.cache_bytes_dropped += before - std::min(before, cache.bytes());
}

caf::result<std::uint64_t> SchedulerState::spill_all(const SpillAll& message) {
    auto promise = self->make_response_promise<std::uint64_t>();
    if (spill_round) {
        promise.deliver(std::uint64_t{0});
        return promise;
    }
    spill_round.emplace();
    spill_round->rest = cache.unsaved();
    std::reverse(spill_round->rest.begin(), spill_round->rest.end());
    spill_round->end = Clock::now() + message.within;
    spill_round->done = [promise](std::uint64_t n_written) mutable { promise.deliver(n_written); };
    spill_some();
    return promise;
}

}  // namespace pantheon::actors

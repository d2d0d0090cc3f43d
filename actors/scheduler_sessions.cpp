// The scheduler's side of named sessions: list, drop, and to and from disk. What waits for the store or the
// die waits as a message; nothing here blocks.
#include <algorithm>
#include <utility>

#include "actors/scheduler.h"

namespace pantheon::actors {
namespace {

constexpr std::chrono::seconds kDieTimeout{60};     // behind the step under way
constexpr std::chrono::seconds kStoreTimeout{120};  // a large state on a slow disk

Error no_answer(std::string_view who) {
    return Error(Code::unavailable, "session: the " + std::string(who) + " does not answer");
}

Error not_saved() {
    return Error(Code::not_found, "session: none of that name has been saved");
}

}  // namespace

caf::result<SessionAnswer> SchedulerState::session_command(const SessionCommandPtr& command) {
    auto promise = self->make_response_promise<SessionAnswer>();
    const std::function<void(Result<Json>)> answer = [promise](Result<Json> result) mutable {
        promise.deliver(std::make_shared<const Result<Json>>(std::move(result)));
    };
    const SessionRequest& request = command->request;
    const std::string& op = request.op;
    const SessionKey key{space_of(command->who, request.cache), request.session.value_or("")};
    const CacheSpace who = space_of(command->who, CacheMode::private_);
    if (request.cache == CacheMode::off) {
        answer(Error(Code::invalid_argument, "cache: sessions are private or shared"));
    } else if (op == "sessions") {
        answer(list_sessions(key.space, who));
    } else if (op == "session.drop") {
        drop_session(key, who, command->is_admin, answer);
    } else if (op == "session.save") {
        save_session(key, answer);
    } else if (op == "session.load") {
        load_session(key, [answer, this, key](const Status& loaded) {
            if (!loaded) return answer(loaded.error());
            const auto found = cache.session(key.space, key.name);
            answer(Json{{"tokens", found ? found->n_tokens : 0}});
        });
    } else {
        answer(Error(Code::unimplemented, op + ": not available in this version"));
    }
    return promise;
}

const SavedState* SchedulerState::find_saved(const SessionKey& key) const {
    const auto found = std::find_if(saved.begin(), saved.end(), [&](const SavedState& state) {
        return state.space == key.space && state.name == key.name;
    });
    return found == saved.end() ? nullptr : &*found;
}

Json SchedulerState::list_sessions(const CacheSpace& space, const CacheSpace& who) const {
    Json list = Json::array();
    for (const Session& session : cache.sessions(space))
        list.push_back(Json{{"session", session.name},
                            {"tokens", session.n_tokens},
                            {"bytes", session.bytes},
                            {"own", session.owner == who},
                            {"loaded", true},
                            {"saved", find_saved({space, session.name}) != nullptr}});
    for (const SavedState& state : saved) {
        if (state.space != space || cache.session(space, state.name)) continue;
        list.push_back(Json{{"session", state.name},
                            {"tokens", state.tokens.size()},
                            {"bytes", state.bytes},
                            {"own", state.owner == who},
                            {"loaded", false},
                            {"saved", true}});
    }
    return Json{{"sessions", std::move(list)}};
}

void SchedulerState::drop_session(const SessionKey& key, const CacheSpace& who, bool is_admin,
                                  std::function<void(Result<Json>)> answer) {
    const SavedState* on_disk = find_saved(key);
    if (on_disk && on_disk->owner != who && !is_admin)
        return answer(Error(Code::permission_denied, "session: it belongs to another client"));
    const auto session = cache.session(key.space, key.name);
    const auto copy =
        session ? disk.at(key.space, cache.tokens_of(session->checkpoint)) : std::optional<std::string>();
    const Status dropped = cache.drop_session(key.space, key.name, who, is_admin);
    if (dropped && copy) drop_from_disk(*copy);
    send_drops();
    if (!on_disk) return answer(dropped ? Result<Json>(Json{{"dropped", true}}) : dropped.error());
    self->request(wiring->store, kStoreTimeout, DropState{key.space, key.name})
        .then(
            [this, answer](const StoreAnswer& status) {
                refresh_saved([](const Status&) {});
                answer(*status ? Result<Json>(Json{{"dropped", true}}) : status->error());
            },
            [answer](const caf::error&) { answer(no_answer("store")); });
}

void SchedulerState::save_session(const SessionKey& key, std::function<void(Result<Json>)> answer) {
    const auto session = cache.session(key.space, key.name);
    if (!session) return answer(Error(Code::not_found, "session: there is none of that name"));
    if (!has_die()) return answer(no_answer("die"));
    auto message = std::make_shared<SaveState>();
    message->what.space = key.space;
    message->what.name = key.name;
    message->what.owner = session->owner;
    message->what.tokens = cache.tokens_of(session->checkpoint);
    const CheckpointId id = session->checkpoint;
    self->request(wiring->die, kDieTimeout, GetCheckpoint{id})
        .then(
            [this, answer, message, id](const model::CheckpointPtr& state) {
                if (!state) return answer(Error(Code::not_found, "session: the die no longer has it"));
                message->state = state;
                self->request(wiring->store, kStoreTimeout, SaveStatePtr(message))
                    .then(
                        [this, answer, message, id](const StoreAnswer& status) {
                            refresh_saved([](const Status&) {});
                            if (!*status) return answer(status->error());
                            cache.set_copy(id, PrefixCache::Copy::saved);
                            answer(Json{{"tokens", message->what.tokens.size()}});
                        },
                        [answer](const caf::error&) { answer(no_answer("store")); });
            },
            [answer](const caf::error&) { answer(no_answer("die")); });
}

/// Room is made before the state is read; it becomes known to the cache once the die has been given it.
void SchedulerState::load_session(const SessionKey& key, std::function<void(const Status&)> done) {
    const SavedState* on_disk = find_saved(key);
    if (!on_disk) return done(not_saved());
    if (!has_die()) return done(no_answer("die"));
    const auto n_tokens = static_cast<std::int64_t>(on_disk->tokens.size());
    if (const CheckpointId held = cache.at(key.space, on_disk->tokens); held != CheckpointId())
        return done(cache.name_session(key.space, key.name, on_disk->owner, held));
    if (!cache.reserve(n_tokens))
        return done(Error(Code::resource_exhausted, "session: no room for it in sessions.bytes"));
    send_drops();
    const std::uint64_t generation = wiring->die_generation;
    self->request(wiring->store, kStoreTimeout, LoadState{key.space, key.name})
        .then(
            [this, key, done, n_tokens, generation](const LoadAnswer& file) {
                cache.unreserve(n_tokens);
                if (!*file) {
                    log_warning(name, file->error().to_string());
                    return done(file->error());
                }
                if (!has_die() || wiring->die_generation != generation) return done(no_answer("die"));
                done(adopt_state(key, **file));
            },
            [this, done, n_tokens](const caf::error&) {
                cache.unreserve(n_tokens);
                done(no_answer("store"));
            });
}

Status SchedulerState::adopt_state(const SessionKey& key, const model::StateFile& file) {
    const auto& tokens = file.header.tokens;
    CheckpointId id = cache.at(key.space, tokens);
    if (id == CheckpointId()) {
        const auto added = cache.add(key.space, tokens, {}, /*is_asked_for=*/true);
        send_drops();
        if (!added) return Error(Code::resource_exhausted, "session: no room for it in sessions.bytes");
        id = *added;
        self->send(wiring->die, AdoptCheckpoint{id, file.state});
        cache.confirm(id, file.state->kv_blocks());
    }
    cache.set_copy(id, PrefixCache::Copy::saved);
    return cache.name_session(key.space, key.name, file.header.owner, id);
}

void SchedulerState::refresh_saved(std::function<void(const Status&)> done) {
    self->request(wiring->store, kStoreTimeout, ListStates{})
        .then(
            [this, done](const SavedStates& states) {
                saved = *states;
                done(Status());
            },
            [done](const caf::error&) { done(no_answer("store")); });
}

/// What was saved is there again after a restart or a lost die, newest first, as far as it fits.
void SchedulerState::load_saved() {
    if (!cache.is_enabled()) return;
    refresh_saved([this](const Status& listed) {
        if (!listed || saved.empty()) return;
        auto keys = std::make_shared<std::vector<SessionKey>>();
        for (auto state = saved.rbegin(); state != saved.rend(); ++state)
            keys->push_back({state->space, state->name});
        load_next(keys);
    });
}

void SchedulerState::load_next(const std::shared_ptr<std::vector<SessionKey>>& keys) {
    if (keys->empty()) return;
    const SessionKey key = keys->back();
    keys->pop_back();
    load_session(key, [this, keys](const Status& loaded) {
        if (!loaded && loaded.error().code() == Code::resource_exhausted) return;
        load_next(keys);
    });
}

}  // namespace pantheon::actors

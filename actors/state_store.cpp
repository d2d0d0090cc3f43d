#include "actors/state_store.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace pantheon::actors {
namespace {

constexpr std::string_view kEnding = ".state";

Error no_folder() {
    return Error(Code::failed_precondition, "sessions.dir: not set, states are not saved");
}

std::int64_t written_at(const std::string& path) {
    std::error_code ignored;
    const auto time = std::filesystem::last_write_time(path, ignored);
    return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

}  // namespace

StateFolder::StateFolder(std::string dir, std::string fingerprint,
                         std::shared_ptr<const model::CheckpointCodec> codec)
    : dir_(std::move(dir)), fingerprint_(std::move(fingerprint)), codec_(std::move(codec)) {
    if (!dir_.empty() && codec_) scan();
}

/// A bad file is named once in the log and left alone: it may be of another version.
void StateFolder::scan() {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(dir_, error)) {
        const std::string path = entry.path().string();
        if (!path.ends_with(kEnding)) continue;
        auto header = model::read_state_header(path);
        if (!header) {
            log_warning(StateStoreState::name, header.error().to_string());
            continue;
        }
        if (header->fingerprint != fingerprint_ || header->layout != codec_->layout()) continue;
        const auto n_tokens = static_cast<std::int64_t>(header->tokens.size());
        const Key key{header->space, header->name};
        if (path != path_of(key)) {
            log_warning(StateStoreState::name, path + ": does not have the name that its contents give it");
            continue;
        }
        files_[key] = {path,
                       {header->space, header->name, header->owner, std::move(header->tokens),
                        codec_->encoded_bytes(static_cast<std::int32_t>(n_tokens)), written_at(path)}};
    }
}

std::string StateFolder::path_of(const Key& key) const {
    // The model is part of the name: another model's session of the same name is another file.
    return dir_ + "/" + model::state_file_name({fingerprint_, codec_->layout(), key.first, key.second}) +
           std::string(kEnding);
}

Status StateFolder::save(const SaveState& message) {
    if (dir_.empty() || !codec_) return no_folder();
    make_state_folder(dir_);
    model::StateHeader header;
    header.fingerprint = fingerprint_;
    header.space = message.what.space;
    header.name = message.what.name;
    header.owner = message.what.owner;
    header.tokens = message.what.tokens;
    const Key key{message.what.space, message.what.name};
    const std::string path = path_of(key);
    if (Status ok = model::write_state_file(path, std::move(header), *message.state, *codec_); !ok) return ok;
    files_[key] = {path, message.what};
    files_[key].what.bytes = codec_->encoded_bytes(message.state->length());
    files_[key].what.saved_ms = written_at(path);
    return {};
}

Result<model::StateFile> StateFolder::load(const std::string& space, const std::string& name) const {
    const auto found = files_.find({space, name});
    if (found == files_.end()) return Error(Code::not_found, "session: none of that name has been saved");
    return model::read_state_file(found->second.path, fingerprint_, *codec_);
}

Status StateFolder::drop(const std::string& space, const std::string& name) {
    const auto found = files_.find({space, name});
    if (found == files_.end()) return Error(Code::not_found, "session: none of that name has been saved");
    std::error_code error;
    std::filesystem::remove(found->second.path, error);
    if (error) return Error(Code::unavailable, found->second.path + ": " + error.message());
    files_.erase(found);
    return {};
}

std::vector<SavedState> StateFolder::list() const {
    std::vector<SavedState> list;
    for (const auto& [key, file] : files_) list.push_back(file.what);
    std::stable_sort(list.begin(), list.end(),
                     [](const SavedState& a, const SavedState& b) { return a.saved_ms > b.saved_ms; });
    return list;
}

std::uint64_t StateFolder::disk_bytes() const {
    std::uint64_t sum = 0;
    for (const auto& [key, file] : files_) sum += file.what.bytes;
    return sum;
}

StoreActor::behavior_type state_store(StoreActor::stateful_pointer<StateStoreState> self,
                                      SettingsPtr settings) {
    install_handlers(self);
    self->state.folder.emplace(settings->cache.dir, settings->model.fingerprint, settings->engine.codec);
    self->state.spilled.emplace(settings->cache.dir, settings->model.fingerprint, settings->engine.codec);
    return {
        [self](const SaveStatePtr& message) -> StoreAnswer {
            return std::make_shared<const Status>(self->state.folder->save(*message));
        },
        [self](const LoadState& message) -> LoadAnswer {
            return std::make_shared<const Result<model::StateFile>>(
                self->state.folder->load(message.space, message.name));
        },
        [self](const DropState& message) -> StoreAnswer {
            return std::make_shared<const Status>(self->state.folder->drop(message.space, message.name));
        },
        [self](const ListStates&) -> SavedStates {
            return std::make_shared<const std::vector<SavedState>>(self->state.folder->list());
        },
        [self](const SpillStatePtr& message) -> SpillAnswer {
            return std::make_shared<const Result<StateOnDisk>>(self->state.spilled->write(*message));
        },
        [self](const LoadSpilled& message) -> LoadAnswer {
            return std::make_shared<const Result<model::StateFile>>(self->state.spilled->read(message.file));
        },
        [self](const DropSpilled& message) { self->state.spilled->drop(message.files); },
        [self](const ListSpilled&) -> SpilledStates {
            return std::make_shared<const std::vector<StateOnDisk>>(self->state.spilled->list());
        },
    };
}

}  // namespace pantheon::actors

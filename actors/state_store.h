// The actor that owns the folder of saved sessions and spilled checkpoints.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "actors/messages.h"
#include "actors/spill_folder.h"

namespace pantheon::actors {

/// The files of one folder by whose they are and what they are called. Blocks while it reads and writes.
class StateFolder {
  public:
    /// dir empty: there is no folder, every call but list() says so.
    StateFolder(std::string dir, std::string fingerprint,
                std::shared_ptr<const model::CheckpointCodec> codec);

    Status save(const SaveState& message);
    Result<model::StateFile> load(const std::string& space, const std::string& name) const;
    /// not_found, or what the disk says.
    Status drop(const std::string& space, const std::string& name);
    /// Those that this model can use, newest first.
    std::vector<SavedState> list() const;
    std::uint64_t disk_bytes() const;

  private:
    using Key = std::pair<std::string, std::string>;
    struct File {
        std::string path;
        SavedState what;
    };
    void scan();
    std::string path_of(const Key& key) const;

    std::string dir_;
    std::string fingerprint_;
    std::shared_ptr<const model::CheckpointCodec> codec_;
    std::map<Key, File> files_;
};

struct StateStoreState {
    static inline const char* name = "store";
    std::optional<StateFolder> folder;
    std::optional<SpillFolder> spilled;
};

/// Spawn detached: it blocks.
StoreActor::behavior_type state_store(StoreActor::stateful_pointer<StateStoreState> self,
                                      SettingsPtr settings);

}  // namespace pantheon::actors

// The files of checkpoints that the prefix cache has put on disk.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "actors/messages.h"

namespace pantheon::actors {

/// Makes the folder for states, for its owner alone, unless there is one.
void make_state_folder(const std::string& dir);

/// One file a checkpoint, named after what is in it, beside those of saved sessions. Holds no list: what is
/// there is what the folder says. Blocks while it reads and writes.
class SpillFolder {
  public:
    /// dir empty or no codec: there is no folder; nothing is listed and nothing can be written.
    SpillFolder(std::string dir, std::string fingerprint,
                std::shared_ptr<const model::CheckpointCodec> codec);

    /// What is there, in no order. Damaged files and what an interrupted write has left are removed; files of
    /// another model, KV format or version are listed without tokens.
    std::vector<StateOnDisk> list() const;
    /// Whole or not at all. unavailable: the disk says no.
    Result<StateOnDisk> write(const SpillState& message) const;
    /// As model::read_state_file(). A damaged file is removed; one that is read counts as used.
    Result<model::StateFile> read(const std::string& file) const;
    void drop(const std::vector<std::string>& files) const;

  private:
    std::string file_of(const CacheSpace& space, const std::vector<TokenId>& tokens) const;
    std::string path_of(const std::string& file) const { return dir_ + "/" + file; }
    /// Nothing: it was damaged and is gone.
    std::optional<StateOnDisk> describe(const std::string& file) const;

    std::string dir_;
    std::string fingerprint_;
    std::shared_ptr<const model::CheckpointCodec> codec_;
};

}  // namespace pantheon::actors

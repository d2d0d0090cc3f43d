// A kept state in a file of its own: written aside and renamed, checksummed, and bound to one model.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "model/state/checkpoint_codec.h"
#include "runtime/base/ids.h"
#include "runtime/base/status.h"

namespace pantheon::model {

/// What the file says of itself before the state.
struct StateHeader {
    std::string fingerprint;         // of the model
    std::string layout;              // CheckpointCodec::layout() of who wrote it
    std::string space, name, owner;  // whose it is and what it is called; opaque here
    std::vector<TokenId> tokens;     // that led to the state
};

struct StateFile {
    StateHeader header;
    CheckpointPtr state;
};

/// A file name without ending that stands for these parts and, as far as chance allows, for no others.
std::string state_file_name(std::initializer_list<std::string_view> parts);

/// What write_state_file() makes of a header and a state of header.tokens.size() tokens, in bytes.
std::uint64_t state_file_bytes(StateHeader header, const CheckpointCodec& codec);

/// Writes path + ".new", syncs, renames it to path, syncs the folder: whenever the process or the host ends,
/// path is the old file or the new one, whole. `layout` is set here. unavailable: the disk says no.
Status write_state_file(const std::string& path, StateHeader header, const Checkpoint& state,
                        const CheckpointCodec& codec);

/// The header alone, checked by its own checksum. not_found; data_loss: not such a file, or damaged.
Result<StateHeader> read_state_header(const std::string& path);

/// All of it. failed_precondition: of another model, KV format or layout; data_loss: damaged, nothing of it
/// is used.
Result<StateFile> read_state_file(const std::string& path, const std::string& fingerprint,
                                  const CheckpointCodec& codec);

}  // namespace pantheon::model

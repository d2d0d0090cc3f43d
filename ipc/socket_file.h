// The daemon's listening socket in the file system: made by us rather than by ZeroMQ, which would take over a
// live daemon's path without a word, leave the file behind and let the umask decide who may connect.
#pragma once

#include <sys/stat.h>

#include <string>

#include "runtime/base/status.h"

namespace pantheon::ipc {

/// Owns the path for as long as it lives: holds a flock on `<path>.lock` (the lock file itself stays,
/// removing it would race) and unlinks the socket at the end if it is still the one it made.
class SocketFile {
  public:
    /// Binds and listens at `path` (absolute, at most 107 bytes, in a directory that exists) with `mode`. A
    /// socket that nobody answers on is replaced, when it is ours or we are root; a live daemon, another kind
    /// of file or another user's socket is failed_precondition.
    static Result<SocketFile> claim(const std::string& path, mode_t mode);

    SocketFile(SocketFile&& other) noexcept;
    SocketFile& operator=(SocketFile&&) = delete;
    ~SocketFile();

    /// The listening descriptor; the caller closes it.
    int take_fd();

  private:
    SocketFile() = default;

    std::string path_;
    int lock_fd_ = -1;
    int listen_fd_ = -1;
    dev_t device_ = 0;
    ino_t inode_ = 0;
    bool is_bound_ = false;
};

/// The path of an "ipc://" endpoint; empty for any other.
std::string ipc_path(const std::string& endpoint);

enum class Listener { none, present, forbidden };

/// Whether somebody listens at a socket file, without saying anything to them.
Listener probe_listener(const std::string& path);

}  // namespace pantheon::ipc

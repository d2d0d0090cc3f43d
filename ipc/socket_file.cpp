#include "ipc/socket_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace pantheon::ipc {
namespace {

constexpr std::size_t kMaxPathBytes = sizeof(sockaddr_un::sun_path) - 1;
constexpr int kBacklog = 128;

Error refusal(const std::string& path, const std::string& what) {
    return Error(Code::failed_precondition, "socket " + path + ": " + what);
}

Error system_refusal(const std::string& path, const char* step, int error) {
    return refusal(path, std::string(step) + ": " + std::strerror(error));
}

sockaddr_un address_of(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    return address;
}

int bind_to(int fd, const std::string& path) {
    const sockaddr_un address = address_of(path);
    return bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
}

Status check_path(const std::string& path) {
    if (path.empty() || path[0] != '/')
        return Error(Code::invalid_argument, "socket " + path + ": not an absolute path");
    if (path.size() > kMaxPathBytes)
        return Error(Code::invalid_argument,
                     "socket " + path + ": longer than " + std::to_string(kMaxPathBytes) + " bytes");
    const std::string directory = path.substr(0, std::max<std::size_t>(path.rfind('/'), 1));
    struct stat info {};
    if (stat(directory.c_str(), &info) != 0)
        return refusal(path, "directory " + directory + ": " + std::strerror(errno));
    if (!S_ISDIR(info.st_mode)) return refusal(path, directory + " is not a directory");
    return {};
}

/// Removes what stands at path if it is a dead socket of ours; refuses everything else.
Status remove_stale(const std::string& path) {
    struct stat info {};
    if (lstat(path.c_str(), &info) != 0)
        return errno == ENOENT ? Status() : system_refusal(path, "stat", errno);
    if (!S_ISSOCK(info.st_mode))
        return refusal(path, "the file exists and is not a socket; it was left alone");
    if (info.st_uid != geteuid() && geteuid() != 0)
        return refusal(path,
                       "the socket belongs to uid " + std::to_string(info.st_uid) + "; it was left alone");
    if (probe_listener(path) != Listener::none) return refusal(path, "another process answers there");
    if (unlink(path.c_str()) != 0) return system_refusal(path, "unlink of the stale socket", errno);
    return {};
}

}  // namespace

std::string ipc_path(const std::string& endpoint) {
    constexpr std::string_view kScheme = "ipc://";
    return endpoint.starts_with(kScheme) ? endpoint.substr(kScheme.size()) : std::string();
}

Listener probe_listener(const std::string& path) {
    if (path.empty() || path.size() > kMaxPathBytes) return Listener::none;
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return Listener::present;  // not known; the cautious answer
    const sockaddr_un address = address_of(path);
    const int error =
        connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
    close(fd);
    if (error == ECONNREFUSED || error == ENOENT || error == ENOTDIR || error == ENOTSOCK)
        return Listener::none;
    if (error == EACCES || error == EPERM) return Listener::forbidden;
    return Listener::present;  // connected, or EAGAIN: its backlog is full
}

Result<SocketFile> SocketFile::claim(const std::string& path, mode_t mode) {
    if (auto status = check_path(path); !status) return std::move(status).error();
    SocketFile file;
    file.path_ = path;
    const std::string lock_path = path + ".lock";
    file.lock_fd_ = open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file.lock_fd_ < 0) return system_refusal(path, "lock file", errno);
    if (flock(file.lock_fd_, LOCK_EX | LOCK_NB) != 0)
        return errno == EWOULDBLOCK ? refusal(path, "another daemon holds " + lock_path)
                                    : system_refusal(path, "flock", errno);

    file.listen_fd_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (file.listen_fd_ < 0) return system_refusal(path, "socket", errno);
    int error = bind_to(file.listen_fd_, path);
    if (error == EADDRINUSE) {
        if (auto status = remove_stale(path); !status) return std::move(status).error();
        error = bind_to(file.listen_fd_, path);
    }
    if (error != 0) return system_refusal(path, "bind", error);
    file.is_bound_ = true;
    struct stat info {};
    if (lstat(path.c_str(), &info) != 0) return system_refusal(path, "stat", errno);
    file.device_ = info.st_dev;
    file.inode_ = info.st_ino;
    // Before listen(), so that nobody can connect under the mode that the umask left.
    if (chmod(path.c_str(), mode) != 0) return system_refusal(path, "chmod", errno);
    if (listen(file.listen_fd_, kBacklog) != 0) return system_refusal(path, "listen", errno);
    return file;
}

SocketFile::SocketFile(SocketFile&& other) noexcept
    : path_(std::move(other.path_)),
      lock_fd_(std::exchange(other.lock_fd_, -1)),
      listen_fd_(std::exchange(other.listen_fd_, -1)),
      device_(other.device_),
      inode_(other.inode_),
      is_bound_(std::exchange(other.is_bound_, false)) {}

SocketFile::~SocketFile() {
    if (listen_fd_ >= 0) close(listen_fd_);
    if (is_bound_) {
        struct stat info {};
        const bool is_ours =
            lstat(path_.c_str(), &info) == 0 && info.st_dev == device_ && info.st_ino == inode_;
        if (is_ours) unlink(path_.c_str());
    }
    if (lock_fd_ >= 0) close(lock_fd_);  // last: it guards the unlink as well
}

int SocketFile::take_fd() {
    return std::exchange(listen_fd_, -1);
}

}  // namespace pantheon::ipc

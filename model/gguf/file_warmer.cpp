#include "model/gguf/file_warmer.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/base/units.h"

namespace pantheon::model {
namespace {

constexpr std::int64_t kPiece = 4 << 20;
constexpr std::int64_t kPage = 4096;

std::int64_t file_bytes(const std::string& path) {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0 ? info.st_size : 0;
}

/// Whether the page there can be read without the disk.
bool is_in_memory(int fd, std::int64_t offset) {
    std::array<char, 1> byte;
    const iovec to{byte.data(), byte.size()};
    return ::preadv2(fd, &to, 1, offset, RWF_NOWAIT) == 1;
}

struct Descriptor {
    int fd;
    ~Descriptor() {
        if (fd >= 0) ::close(fd);
    }
};

}  // namespace

FileWarmer::FileWarmer(std::vector<std::string> paths, std::function<std::int64_t()> free_bytes)
    : paths_(std::move(paths)),
      free_bytes_(std::move(free_bytes)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

void FileWarmer::run(const std::stop_token& stop) {
    ::setpriority(PRIO_PROCESS, 0, 19);  // on Linux: of this thread
    for (const std::string& path : paths_) rest_bytes_ += file_bytes(path);
    bool is_whole = true;
    for (const std::string& path : paths_) is_whole = is_whole && warm(path, stop);
    if (is_whole && read_bytes_ > 0)
        log_info("model", format_bytes(read_bytes_) + " of the file have been read ahead from the disk");
    is_done_ = true;
}

bool FileWarmer::warm(const std::string& path, const std::stop_token& stop) {
    const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    if (file.fd < 0) return false;
    ::posix_fadvise(file.fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    const auto buffer = std::make_unique<char[]>(kPiece);
    const std::int64_t n_bytes = file_bytes(path);
    for (std::int64_t at = 0; at < n_bytes; at += kPiece) {
        if (stop.stop_requested() || free_bytes_() < rest_bytes_) return false;
        const std::int64_t n = std::min(kPiece, n_bytes - at);
        // A file is in memory in stretches: the ends and the middle of a piece tell of the rest.
        const bool is_there = is_in_memory(file.fd, at) && is_in_memory(file.fd, at + n / 2) &&
                              is_in_memory(file.fd, std::max(at, at + n - kPage));
        if (!is_there) {
            if (::pread(file.fd, buffer.get(), static_cast<std::size_t>(n), at) != n) return false;
            read_bytes_ += static_cast<std::uint64_t>(n);
        }
        seen_bytes_ += static_cast<std::uint64_t>(n);
        rest_bytes_ -= n;
    }
    return true;
}

}  // namespace pantheon::model

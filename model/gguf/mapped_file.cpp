#include "model/gguf/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace pantheon::model {
namespace {

Error os_error(const std::string& path, int error) {
    const Code code = error == ENOENT || error == ENOTDIR  ? Code::not_found
                      : error == EACCES || error == EPERM  ? Code::permission_denied
                      : error == ENOMEM || error == EMFILE ? Code::resource_exhausted
                                                           : Code::unavailable;
    return Error(code, path + ": " + std::strerror(error));
}

struct Descriptor {
    int fd;
    ~Descriptor() {
        if (fd >= 0) ::close(fd);
    }
};

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
    // Without O_NONBLOCK the open of a FIFO would wait for a writer before it could be refused.
    const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    if (file.fd < 0) return os_error(path, errno);
    struct stat info {};
    if (::fstat(file.fd, &info) != 0) return os_error(path, errno);
    if (!S_ISREG(info.st_mode)) return Error(Code::invalid_argument, path + ": not a regular file");
    if (info.st_size == 0) return MappedFile({});
    const auto n_bytes = static_cast<std::size_t>(info.st_size);
    void* address = ::mmap(nullptr, n_bytes, PROT_READ, MAP_SHARED, file.fd, 0);
    if (address == MAP_FAILED) return os_error(path, errno);
    return MappedFile({static_cast<const std::byte*>(address), n_bytes});
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
}

MappedFile::~MappedFile() {
    if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace pantheon::model

// Opens GGUF files that exist only as bytes.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "model/gguf/gguf_file.h"
#include "tests/support/gguf_writer.h"

namespace pantheon::test {

/// The reader takes paths; an anonymous file has one while its descriptor is open, and the mapping outlives
/// both.
inline Result<std::shared_ptr<const model::GgufFile>> open_bytes(std::string_view bytes) {
    const int fd = ::memfd_create("gguf", MFD_CLOEXEC);
    if (fd < 0) throw std::runtime_error("memfd_create failed");
    for (std::size_t done = 0; done < bytes.size();) {
        const auto n = ::write(fd, bytes.data() + done, bytes.size() - done);
        if (n <= 0) throw std::runtime_error("write failed");
        done += static_cast<std::size_t>(n);
    }
    auto file = model::GgufFile::open("/proc/self/fd/" + std::to_string(fd));
    ::close(fd);
    return file;
}

inline Result<std::shared_ptr<const model::GgufFile>> open_written(const GgufWriter& writer) {
    return open_bytes(writer.to_bytes());
}

}  // namespace pantheon::test

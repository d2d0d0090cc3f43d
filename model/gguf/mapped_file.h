// A regular file, mapped read-only for as long as the object lives.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "runtime/base/status.h"

namespace pantheon::model {

class MappedFile {
  public:
    /// not_found, permission_denied or invalid_argument (not a regular file), each naming the path.
    static Result<MappedFile> open(const std::string& path);
    MappedFile(MappedFile&& other) noexcept;
    MappedFile& operator=(MappedFile&& other) noexcept;
    ~MappedFile();

    /// Empty for a file of no bytes.
    std::span<const std::byte> bytes() const { return bytes_; }

  private:
    explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
    std::span<const std::byte> bytes_;
};

}  // namespace pantheon::model

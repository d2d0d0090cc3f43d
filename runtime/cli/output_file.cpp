#include "runtime/cli/output_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace pantheon::cli {

Result<OutputFile> OutputFile::create(const std::string& path) {
    struct stat info {};
    const bool is_special = stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
    const std::string partial = is_special ? "" : path + ".partial." + std::to_string(getpid());
    std::FILE* file = std::fopen((is_special ? path : partial).c_str(), "wb");
    if (file == nullptr) return Error(Code::failed_precondition, path + ": " + std::strerror(errno));
    return OutputFile(file, path, partial);
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : file_(other.file_), path_(std::move(other.path_)), partial_(std::move(other.partial_)) {
    other.file_ = nullptr;
}

OutputFile::~OutputFile() {
    if (file_ == nullptr) return;
    std::fclose(file_);
    if (!partial_.empty()) unlink(partial_.c_str());
}

Error OutputFile::failure(const char* what) const {
    return {Code::resource_exhausted, path_ + ": " + what + ": " + std::strerror(errno)};
}

Status OutputFile::write(std::span<const std::byte> bytes) {
    if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) return failure("write");
    return {};
}

Status OutputFile::commit() {
    if (std::fflush(file_) != 0) return failure("write");
    if (!partial_.empty() && std::rename(partial_.c_str(), path_.c_str()) != 0) return failure("rename");
    std::FILE* file = file_;
    file_ = nullptr;
    if (std::fclose(file) != 0) return failure("close");
    return {};
}

}  // namespace pantheon::cli

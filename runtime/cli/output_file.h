// A result file that appears complete or not at all.
#pragma once

#include <cstdio>
#include <span>
#include <string>

#include "runtime/base/status.h"

namespace pantheon::cli {

/// Writes beside the target and takes its name when finished; without commit() nothing is left. What exists
/// and is no regular file (a pipe, /dev/null) is written directly.
class OutputFile {
  public:
    static Result<OutputFile> create(const std::string& path);
    OutputFile(OutputFile&& other) noexcept;
    OutputFile& operator=(OutputFile&&) = delete;
    ~OutputFile();

    Status write(std::span<const std::byte> bytes);
    Status commit();

  private:
    OutputFile(std::FILE* file, std::string path, std::string partial)
        : file_(file), path_(std::move(path)), partial_(std::move(partial)) {}
    Error failure(const char* what) const;

    std::FILE* file_ = nullptr;
    std::string path_;
    std::string partial_;  // empty: written directly
};

}  // namespace pantheon::cli

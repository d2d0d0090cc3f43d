// Reads metadata keys of one architecture prefix; the first error sticks, so that a reader can be written as
// one assignment per key and checked once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/gguf/gguf_file.h"
#include "runtime/base/status.h"

namespace pantheon::model {

class KeyReader {
  public:
    KeyReader(const GgufMetadata& metadata, std::string prefix)
        : metadata_(metadata), prefix_(std::move(prefix)) {}

    /// All return something harmless (the default, or min) once an error stands.
    std::int64_t required_int(std::string_view key, std::int64_t min, std::int64_t max);
    std::int64_t int_or(std::string_view key, std::int64_t fallback, std::int64_t min, std::int64_t max);
    double required_float(std::string_view key);
    double float_or(std::string_view key, double fallback);
    std::string string_or(std::string_view key, std::string_view fallback);
    std::optional<bool> optional_bool(std::string_view key);
    std::optional<std::vector<std::int64_t>> optional_ints(std::string_view key);
    /// A scalar, or a per-layer array of which the largest entry counts (0 marks layers that have none).
    std::int64_t int_or_largest(std::string_view key, std::int64_t fallback, std::int64_t min,
                                std::int64_t max);

    std::string full(std::string_view key) const { return prefix_ + std::string(key); }
    /// Records an error about a key unless one stands already.
    void fail(Code code, std::string_view key, const std::string& what);
    void refuse(std::string_view key, const std::string& what) { fail(Code::invalid_argument, key, what); }

    bool has_failed() const { return error_.has_value(); }
    const std::optional<Error>& error() const { return error_; }

  private:
    void fail(Error error);
    const GgufMetadata& metadata_;
    std::string prefix_;
    std::optional<Error> error_;
};

}  // namespace pantheon::model

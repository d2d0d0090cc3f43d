// GGUF files, versions 2 and 3, memory-mapped: metadata, tensor infos, and zero-copy views of the data. A
// split file is one GgufFile, whichever shard's path was given. Anything wrong is a typed error that names
// the file and the key or tensor; nothing is allocated from a count that the remaining bytes cannot back.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "runtime/base/status.h"

namespace pantheon::model {

/// One metadata value. Integers of every width arrive as i64 or u64 (u64 only when above the i64 range), both
/// float widths as double. Arrays are homogeneous.
using GgufScalar = std::variant<std::int64_t, std::uint64_t, double, bool, std::string>;
struct GgufArray {
    std::int32_t element_type = 0;  // the file's type id
    std::variant<std::vector<std::int64_t>, std::vector<std::uint64_t>, std::vector<double>,
                 std::vector<std::string>>
        values;  // bool arrays arrive as integers 0 and 1
    std::size_t size() const;
};
using GgufValue = std::variant<GgufScalar, GgufArray>;

class GgufMetadata {
  public:
    const GgufValue* find(std::string_view key) const;
    bool contains(std::string_view key) const { return find(key) != nullptr; }

    /// Typed getters. Absent: nullopt. Present with a type that does not convert, or out of range:
    /// invalid_argument naming the key. Any integer width is accepted where an integer is wanted, f32 and f64
    /// where a float is.
    Result<std::optional<std::int64_t>> get_int(std::string_view key, std::int64_t min,
                                                std::int64_t max) const;
    Result<std::optional<double>> get_float(std::string_view key) const;
    Result<std::optional<bool>> get_bool(std::string_view key) const;
    Result<std::optional<std::string_view>> get_string(std::string_view key) const;
    /// Arrays; a scalar where an array is wanted is an array of one.
    Result<std::optional<std::vector<std::int64_t>>> get_int_array(std::string_view key) const;
    Result<std::optional<std::vector<double>>> get_float_array(std::string_view key) const;
    /// No copy: valid as long as the metadata.
    Result<const std::vector<std::string>*> get_string_array(
        std::string_view key) const;  // nullptr when absent

    struct Entry {
        std::string key;
        std::int32_t type;  // the file's type id
        GgufValue value;
    };
    std::span<const Entry> entries() const { return entries_; }
    void add(Entry entry);  // the key must be new

  private:
    std::vector<Entry> entries_;  // in file order
    std::unordered_map<std::string, std::size_t> index_;
};

struct GgufTensor {
    std::string name;
    std::int32_t type = 0;                       // id known to kernels::weight_type_info
    std::array<std::int64_t, 4> ne{1, 1, 1, 1};  // ne[0] fastest; missing dimensions are 1
    int n_dims = 1;                              // as written in the file
    std::uint64_t offset = 0;                    // from the start of its shard's file
    std::uint64_t n_bytes = 0;
    int shard = 0;
};

class GgufFile {
  public:
    /// Opens, maps and checks a file or the whole set it belongs to.
    static Result<std::shared_ptr<const GgufFile>> open(const std::string& path);
    ~GgufFile();
    GgufFile(const GgufFile&) = delete;
    GgufFile& operator=(const GgufFile&) = delete;

    const std::string& path() const;  // of the first shard
    std::span<const std::string> shard_paths() const;
    std::uint64_t file_bytes() const;  // over all shards
    std::uint32_t version() const;
    const GgufMetadata& metadata() const;         // of the first shard
    std::span<const GgufTensor> tensors() const;  // over all shards, file order
    const GgufTensor* find_tensor(std::string_view name) const;

    /// The tensor's bytes in the mapping; valid as long as this object. Addresses have no alignment to rely
    /// on.
    std::span<const std::byte> bytes(const GgufTensor& tensor) const;

    /// xxh3-64 of metadata, tensor infos, file size, first and last 4 KiB of every tensor, as 16 hex digits.
    std::string fingerprint() const;

  private:
    GgufFile();
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace pantheon::model

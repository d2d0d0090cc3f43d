// Writes GGUF files, valid or broken on purpose. Shares no code with the reader, so that each checks the
// other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pantheon::test {

/// Where the bytes of a file go, in order.
class ByteSink {
  public:
    virtual ~ByteSink() = default;
    virtual void write(const void* data, std::size_t n_bytes) = 0;
};

/// A metadata value as it stands in the file.
struct GgufTyped {
    std::uint32_t type;
    std::string bytes;

    static GgufTyped u8(std::uint8_t v);
    static GgufTyped i8(std::int8_t v);
    static GgufTyped u16(std::uint16_t v);
    static GgufTyped i16(std::int16_t v);
    static GgufTyped u32(std::uint32_t v);
    static GgufTyped i32(std::int32_t v);
    static GgufTyped u64(std::uint64_t v);
    static GgufTyped i64(std::int64_t v);
    static GgufTyped f32(float v);
    static GgufTyped f64(double v);
    static GgufTyped boolean(bool v);
    static GgufTyped string(std::string_view v);
    static GgufTyped strings(std::span<const std::string> v);
    static GgufTyped i32s(std::span<const std::int32_t> v);
    static GgufTyped f32s(std::span<const float> v);
    /// An array of `count` elements whose encoding is `elements`; they need not agree.
    static GgufTyped array(std::uint32_t element_type, std::uint64_t count, std::string elements);
};

class GgufWriter {
  public:
    using DataFn = std::function<void(ByteSink&)>;  // writes exactly the n_bytes it was registered with

    struct Tensor {
        std::string name;
        std::uint32_t type = 0;
        std::vector<std::int64_t> ne;  // ne[0] fastest
        std::uint64_t n_bytes = 0;
        DataFn data;
        std::optional<std::uint64_t> offset;  // instead of the running sum, in the tensor info only
    };

    /// Also writes general.alignment when it is not 32.
    explicit GgufWriter(std::uint32_t version = 3, std::uint32_t alignment = 32);

    void kv(std::string key, GgufTyped value) { entries_.emplace_back(std::move(key), std::move(value)); }
    void tensor(Tensor tensor) { tensors_.push_back(std::move(tensor)); }
    void tensor(std::string name, std::uint32_t type, std::vector<std::int64_t> ne, std::string data);
    void f32_tensor(std::string name, std::vector<std::int64_t> ne, std::span<const float> data);

    std::vector<Tensor>& tensors() { return tensors_; }

    /// What the header says, when it is to lie.
    std::optional<std::int64_t> claimed_entries, claimed_tensors;
    std::optional<std::uint32_t> magic;
    /// Leave out the padding after the last tensor.
    bool trims_tail = false;

    void write(ByteSink& sink) const;
    std::string to_bytes() const;
    /// Throws std::runtime_error when the file cannot be written.
    void write_file(const std::string& path) const;

    /// Writes <prefix>-%05d-of-%05d.gguf, tensors dealt out in order and in equal numbers; the metadata goes
    /// to the first. Returns the paths.
    std::vector<std::string> write_split(const std::string& prefix, int n_files) const;

  private:
    std::uint32_t version_, alignment_;
    std::vector<std::pair<std::string, GgufTyped>> entries_;
    std::vector<Tensor> tensors_;
};

/// Little-endian bytes of a number, for tests that assemble files by hand.
template <class T>
void append_number(std::string& out, T value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void append_string(std::string& out, std::string_view text);  // u64 length, then the bytes

}  // namespace pantheon::test

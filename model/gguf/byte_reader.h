// A cursor over untrusted bytes. A read past the end fails and moves nothing.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

namespace pantheon::model {

static_assert(std::endian::native == std::endian::little, "GGUF is little-endian and is read in place");

class ByteReader {
  public:
    explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

    std::uint64_t position() const { return position_; }
    std::uint64_t remaining() const { return bytes_.size() - position_; }

    template <class T>
    std::optional<T> read() {
        static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>);
        if (remaining() < sizeof(T)) return std::nullopt;
        T value;
        std::memcpy(&value, bytes_.data() + position_, sizeof value);
        position_ += sizeof value;
        return value;
    }

    /// u64 length and bytes.
    std::optional<std::string_view> read_string() {
        const std::uint64_t start = position_;
        const auto length = read<std::uint64_t>();
        if (!length || *length > remaining()) {
            position_ = start;
            return std::nullopt;
        }
        const auto* text = reinterpret_cast<const char*>(bytes_.data() + position_);
        position_ += *length;
        return std::string_view(text, static_cast<std::size_t>(*length));
    }

  private:
    std::span<const std::byte> bytes_;
    std::uint64_t position_ = 0;
};

}  // namespace pantheon::model

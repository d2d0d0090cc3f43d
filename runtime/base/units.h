// Byte counts: checked arithmetic for sizes that come from files and clients, and sizes for humans.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace pantheon {

constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kMiB = 1024 * kKiB;
constexpr std::uint64_t kGiB = 1024 * kMiB;

/// a · b, or nothing on overflow.
inline std::optional<std::uint64_t> checked_mul(std::uint64_t a, std::uint64_t b) {
    std::uint64_t r;
    if (__builtin_mul_overflow(a, b, &r)) return std::nullopt;
    return r;
}
/// a + b, or nothing on overflow.
inline std::optional<std::uint64_t> checked_add(std::uint64_t a, std::uint64_t b) {
    std::uint64_t r;
    if (__builtin_add_overflow(a, b, &r)) return std::nullopt;
    return r;
}

/// "512 B", "4.5 MiB", "21.2 GiB".
std::string format_bytes(std::uint64_t n_bytes);

}  // namespace pantheon

// The random numbers of synthetic models: the same on every machine, fast enough to fill gigabytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace pantheon::test {

constexpr std::uint64_t fnv1a_64(std::string_view text) {
    std::uint64_t hash = 0xCBF29CE484222325;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
    return hash;
}

/// The output of splitmix64 for a state.
constexpr std::uint64_t splitmix64(std::uint64_t state) {
    std::uint64_t z = state + 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
}

/// xoshiro256++
class RandomBits {
  public:
    explicit RandomBits(std::uint64_t seed) {
        for (std::uint64_t& word : s_) word = seed = splitmix64(seed);
    }

    std::uint64_t next() {
        const std::uint64_t result = rotate(s_[0] + s_[3], 23) + s_[0];
        const std::uint64_t t = s_[1] << 17;
        s_[2] ^= s_[0];
        s_[3] ^= s_[1];
        s_[1] ^= s_[2];
        s_[0] ^= s_[3];
        s_[2] ^= t;
        s_[3] = rotate(s_[3], 45);
        return result;
    }

    /// In [0, 1).
    double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

    void fill(std::byte* out, std::size_t n_bytes) {
        for (; n_bytes >= 8; n_bytes -= 8, out += 8) {
            const std::uint64_t bits = next();
            std::memcpy(out, &bits, 8);
        }
        const std::uint64_t bits = next();
        std::memcpy(out, &bits, n_bytes);
    }

  private:
    static std::uint64_t rotate(std::uint64_t x, int k) { return x << k | x >> (64 - k); }
    std::uint64_t s_[4];
};

}  // namespace pantheon::test

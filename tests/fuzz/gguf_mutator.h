// Seeded damage to GGUF files: the same seed gives the same bytes on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace pantheon::fuzz {

/// A number in the head of a file: a count, length, type, dimension or offset.
struct NumberField {
    std::size_t at;
    std::size_t width;  // 4 or 8
};

struct GgufSeed {
    std::string name, bytes;
    std::size_t head_bytes = 0;
    std::vector<NumberField> numbers;
};

/// Small valid files that between them have every value type, both versions, several alignments and tensor
/// types.
std::vector<GgufSeed> gguf_seeds();

/// The same as a split set of two files.
std::vector<GgufSeed> gguf_split_seeds();

/// One to three of: flipped bits, random bytes, cuts, removed, repeated and swapped pieces, numbers that
/// promise too much or too little, garbage at the end.
std::string mutated_gguf(const GgufSeed& seed, std::uint64_t number);

}  // namespace pantheon::fuzz

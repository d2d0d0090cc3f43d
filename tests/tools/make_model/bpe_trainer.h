// Byte-pair merges learned from a built-in list of common English words.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace pantheon::test {

/// The 256 bytes in the printable alphabet of byte-level BPE, in the order of real vocabularies: the
/// printable bytes first, then the others.
std::vector<std::string> byte_alphabet();

/// The printable form of a text, byte by byte.
std::string to_byte_alphabet(const std::string& text);

struct BpeMerge {
    std::string left, right;
};

/// At most n_merges merges, strongest first. No two give the same token. Deterministic.
std::vector<BpeMerge> train_bpe(std::size_t n_merges);

}  // namespace pantheon::test

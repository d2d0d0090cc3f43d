// Seeded damage to messages: the same seed gives the same bytes on every machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pantheon::fuzz {

/// Every file of the seed corpus, in name order.
std::vector<std::string> message_corpus();

/// Takes one seed and damages it: flipped bits, changed, inserted, removed and repeated bytes, cuts, headers
/// that promise too much, the tail of another seed.
std::string mutated_message(const std::vector<std::string>& corpus, std::uint64_t seed);

}  // namespace pantheon::fuzz

// Picking the candidates that survive top-k and top-p without sorting the vocabulary.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "model/sampler/logit_row.h"
#include "model/sampler/token_set.h"
#include "runtime/base/ids.h"

namespace pantheon::model {

struct Candidate {
    float logit = 0.0F;
    TokenId id = -1;
};

/// Higher logit first, lower id on ties: a strict total order on finite logits.
inline bool comes_before(const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

/// The k best entries, in no particular order; those of `left_out` and entries that are −infinity are none.
/// `changed`, in order of id and each id once, stand in place of the row's values. For small k tiles of the
/// row whose maximum cannot be among the best are not read; O(n) for any k.
std::vector<Candidate> select_top(const LogitRow& row, std::span<const Candidate> changed,
                                  const TokenSet& left_out, std::size_t k);

/// Cuts `candidates` to the fewest best ones whose weights exp((logit − max_logit) / temperature) make up at
/// least `share` of all, at least one. Order afterwards: best first. O(n) unless the nucleus is a large part
/// of n.
void keep_nucleus(std::vector<Candidate>& candidates, double max_logit, double temperature, double share);

}  // namespace pantheon::model

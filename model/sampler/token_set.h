// A set of token ids that is asked about far more often than it is made.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "runtime/base/ids.h"

namespace pantheon::model {

class TokenSet {
  public:
    TokenSet() = default;
    /// Ids below 0 are left out.
    explicit TokenSet(std::span<const TokenId> ids) {
        const auto greatest = std::max_element(ids.begin(), ids.end());
        if (greatest == ids.end() || *greatest < 0) return;
        is_member_.resize(static_cast<std::size_t>(*greatest) + 1);
        for (const TokenId id : ids)
            if (id >= 0) is_member_[static_cast<std::size_t>(id)] = true;
    }

    bool contains(TokenId id) const {
        return static_cast<std::size_t>(id) < is_member_.size() && is_member_[static_cast<std::size_t>(id)];
    }

  private:
    std::vector<bool> is_member_;
};

}  // namespace pantheon::model

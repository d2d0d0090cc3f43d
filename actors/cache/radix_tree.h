// Which token sequences have a checkpoint, and how far a new one agrees with any of them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "runtime/base/ids.h"

namespace pantheon::actors {

/// A path from the root spells a token sequence; a node may carry the checkpoint of the sequence up to it.
/// Nothing is stored that leads to no checkpoint.
class RadixTree {
  public:
    struct Node {
        CheckpointId checkpoint;  // 0: none
        std::int64_t depth = 0;   // tokens from the root
        Node* parent = nullptr;
        std::vector<TokenId> edge;  // the tokens from the parent to here; empty for the root alone
        std::map<TokenId, std::unique_ptr<Node>> children;  // by the first token of their edge
    };

    struct Match {
        std::int64_t n_shared = 0;      // length of the longest prefix that a stored path has too
        const Node* deepest = nullptr;  // the deepest node with a checkpoint, at most `limit` deep
    };
    Match match(std::span<const TokenId> tokens, std::int64_t limit) const;

    /// The node of exactly these tokens, made if need be. It must be given a checkpoint before the next call.
    Node& insert(std::span<const TokenId> tokens);
    /// Takes the node's checkpoint away, and with it what then leads nowhere. Other nodes stay where they
    /// are.
    void remove(Node& node);

    /// The depth of the nearest checkpoint above the node; 0: none.
    static std::int64_t depth_above(const Node& node);
    /// The tokens from the root to the node.
    static std::vector<TokenId> path(const Node& node);

    bool is_empty() const { return root_.children.empty(); }
    /// What the tree itself takes, roughly.
    std::uint64_t bytes() const { return n_tokens_ * sizeof(TokenId) + n_nodes_ * kNodeBytes; }

  private:
    static constexpr std::uint64_t kNodeBytes = sizeof(Node) + 96;  // with its entry in the parent's map

    void merge_with_only_child(Node& node);

    Node root_;
    std::uint64_t n_tokens_ = 0;
    std::uint64_t n_nodes_ = 0;
};

}  // namespace pantheon::actors

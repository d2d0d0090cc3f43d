#include "actors/cache/radix_tree.h"

#include <algorithm>
#include <utility>

namespace pantheon::actors {
namespace {

/// Tokens that the edge and the rest have in common from their beginnings on.
std::size_t n_common(const std::vector<TokenId>& edge, std::span<const TokenId> rest) {
    const std::size_t n = std::min(edge.size(), rest.size());
    return static_cast<std::size_t>(
        std::mismatch(edge.begin(), edge.begin() + static_cast<std::ptrdiff_t>(n), rest.begin()).first -
        edge.begin());
}

}  // namespace

RadixTree::Match RadixTree::match(std::span<const TokenId> tokens, std::int64_t limit) const {
    Match match;
    const Node* node = &root_;
    while (true) {
        if (node->checkpoint != CheckpointId() && node->depth <= limit) match.deepest = node;
        const auto rest = tokens.subspan(static_cast<std::size_t>(node->depth));
        if (rest.empty()) return match;
        const auto child = node->children.find(rest.front());
        if (child == node->children.end()) return match;
        const std::size_t n = n_common(child->second->edge, rest);
        match.n_shared += static_cast<std::int64_t>(n);
        if (n < child->second->edge.size()) return match;
        node = child->second.get();
    }
}

RadixTree::Node& RadixTree::insert(std::span<const TokenId> tokens) {
    Node* node = &root_;
    while (true) {
        const auto rest = tokens.subspan(static_cast<std::size_t>(node->depth));
        if (rest.empty()) return *node;
        auto& child = node->children[rest.front()];
        if (!child) {
            child = std::make_unique<Node>();
            child->parent = node;
            child->depth = static_cast<std::int64_t>(tokens.size());
            child->edge.assign(rest.begin(), rest.end());
            n_tokens_ += rest.size();
            ++n_nodes_;
            return *child;
        }
        const std::size_t n = n_common(child->edge, rest);
        if (n < child->edge.size()) {
            // The edge parts within: a new node takes its first n tokens and the child below keeps the rest.
            auto upper = std::make_unique<Node>();
            upper->parent = node;
            upper->depth = node->depth + static_cast<std::int64_t>(n);
            upper->edge.assign(child->edge.begin(), child->edge.begin() + static_cast<std::ptrdiff_t>(n));
            child->edge.erase(child->edge.begin(), child->edge.begin() + static_cast<std::ptrdiff_t>(n));
            child->parent = upper.get();
            const TokenId first = child->edge.front();
            upper->children.emplace(first, std::move(child));
            child = std::move(upper);
            ++n_nodes_;
        }
        node = child.get();
    }
}

void RadixTree::remove(Node& node) {
    node.checkpoint = CheckpointId();
    Node* at = &node;
    while (at->parent && at->checkpoint == CheckpointId() && at->children.empty()) {
        Node* parent = at->parent;
        n_tokens_ -= at->edge.size();
        --n_nodes_;
        const TokenId first = at->edge.front();
        parent->children.erase(first);
        at = parent;
    }
    if (at->parent && at->checkpoint == CheckpointId() && at->children.size() == 1)
        merge_with_only_child(*at);
}

void RadixTree::merge_with_only_child(Node& node) {
    std::unique_ptr<Node> child = std::move(node.children.begin()->second);
    child->edge.insert(child->edge.begin(), node.edge.begin(), node.edge.end());
    child->parent = node.parent;
    --n_nodes_;
    auto& place = node.parent->children.at(node.edge.front());
    place = std::move(child);  // ends `node`
}

std::int64_t RadixTree::depth_above(const Node& node) {
    for (const Node* at = node.parent; at; at = at->parent)
        if (at->checkpoint != CheckpointId()) return at->depth;
    return 0;
}

std::vector<TokenId> RadixTree::path(const Node& node) {
    std::vector<TokenId> tokens(static_cast<std::size_t>(node.depth));
    for (const Node* at = &node; at->parent; at = at->parent)
        std::copy(at->edge.begin(), at->edge.end(), tokens.begin() + at->parent->depth);
    return tokens;
}

}  // namespace pantheon::actors

#include "actors/cache/disk_index.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace pantheon::actors {

// ---- finding
// ----------------------------------------------------------------------------------------------------

DiskIndex::Lookup DiskIndex::look(const CacheSpace& space, std::span<const TokenId> prompt) const {
    Lookup found;
    if (!is_enabled()) return found;
    const auto look_in = [&](const CacheSpace& where) {
        const auto tree = trees_.find(where);
        if (tree == trees_.end()) return;
        const auto match = tree->second.match(prompt, static_cast<std::int64_t>(prompt.size()) - 1);
        found.n_shared = std::max(found.n_shared, match.n_shared);
        if (!match.deepest || match.deepest->depth <= found.length) return;
        found.file = files_.at(match.deepest->checkpoint);
        found.length = match.deepest->depth;
    };
    look_in(space);
    if (space != kSharedSpace) look_in(kSharedSpace);
    return found;
}

std::optional<std::string> DiskIndex::at(const CacheSpace& space, std::span<const TokenId> tokens) const {
    const auto tree = trees_.find(space);
    if (tree == trees_.end()) return std::nullopt;
    const auto n = static_cast<std::int64_t>(tokens.size());
    const RadixTree::Node* node = tree->second.match(tokens, n).deepest;
    if (!node || node->depth != n) return std::nullopt;
    return files_.at(node->checkpoint);
}

StateOnDisk DiskIndex::state_of(const std::string& file, const Entry& entry) const {
    return {file, entry.space, RadixTree::path(*entry.node), entry.bytes, entry.used_ms};
}

std::optional<StateOnDisk> DiskIndex::describe(const std::string& file) const {
    const auto entry = entries_.find(file);
    if (entry == entries_.end()) return std::nullopt;
    return state_of(file, entry->second);
}

// ---- coming and going
// -------------------------------------------------------------------------------------------

/// Tokens that need not be evaluated thanks to this file and to none above it, for each of its bytes.
double DiskIndex::value_per_byte(const Entry& entry) const {
    const std::int64_t n_tokens = entry.node->depth - RadixTree::depth_above(*entry.node);
    return static_cast<double>(n_tokens) / static_cast<double>(entry.bytes + 1);
}

std::vector<DiskIndex::Pending>::iterator DiskIndex::find_pending(const CacheSpace& space,
                                                                  const std::vector<TokenId>& tokens) {
    return std::find_if(pending_.begin(), pending_.end(), [&](const Pending& pending) {
        return pending.space == space && pending.tokens == tokens;
    });
}

bool DiskIndex::reserve(const CacheSpace& space, const std::vector<TokenId>& tokens, std::uint64_t n_bytes) {
    if (!is_enabled() || tokens.empty() || at(space, tokens)) return false;
    if (find_pending(space, tokens) != pending_.end()) return false;
    std::int64_t depth_above = 0;
    if (const auto tree = trees_.find(space); tree != trees_.end()) {
        const auto match = tree->second.match(tokens, static_cast<std::int64_t>(tokens.size()));
        if (match.deepest) depth_above = match.deepest->depth;
    }
    const auto n_new = static_cast<double>(static_cast<std::int64_t>(tokens.size()) - depth_above);
    if (!make_room(n_bytes, 1, n_new / static_cast<double>(n_bytes + 1))) return false;
    pending_.push_back({space, tokens, n_bytes});
    bytes_ += n_bytes;
    return true;
}

void DiskIndex::cancel(const CacheSpace& space, const std::vector<TokenId>& tokens) {
    const auto pending = find_pending(space, tokens);
    if (pending == pending_.end()) return;
    bytes_ -= pending->bytes;
    pending_.erase(pending);
}

void DiskIndex::add(const StateOnDisk& state) {
    cancel(state.space, state.tokens);
    insert(state);
    make_room(0, 0, std::numeric_limits<double>::max());
}

void DiskIndex::insert(const StateOnDisk& state) {
    if (entries_.contains(state.file)) return;
    bytes_ += state.bytes;
    if (state.tokens.empty()) {
        foreign_.push_back(state);
        return;
    }
    if (const auto other = at(state.space, state.tokens)) erase(*other);
    RadixTree::Node& node = trees_[state.space].insert(state.tokens);
    node.checkpoint = CheckpointId(next_id_++);
    files_[node.checkpoint] = state.file;
    entries_[state.file] = {node.checkpoint, state.space, &node,    state.bytes,
                            state.used_ms,   clock_,      ++n_uses_};
}

void DiskIndex::use(const std::string& file) {
    const auto entry = entries_.find(file);
    if (entry == entries_.end()) return;
    entry->second.clock = clock_;
    entry->second.last_use = ++n_uses_;
}

void DiskIndex::drop(const std::string& file) {
    if (entries_.contains(file)) erase(file);
}

void DiskIndex::erase(const std::string& file) {
    const auto found = entries_.find(file);
    dropped_.push_back(state_of(found->first, found->second));
    bytes_ -= found->second.bytes;
    files_.erase(found->second.id);
    const auto tree = trees_.find(found->second.space);
    tree->second.remove(*found->second.node);
    if (tree->second.is_empty()) trees_.erase(tree);
    entries_.erase(found);
}

/// The newest of the listing is as if used after the clock had gone on by the value of the best of them.
void DiskIndex::reset(std::vector<StateOnDisk> states) {
    trees_.clear();
    entries_.clear();
    files_.clear();
    foreign_.clear();
    bytes_ = n_uses_ = 0;
    clock_ = 0;
    for (const Pending& pending : pending_) bytes_ += pending.bytes;
    std::stable_sort(states.begin(), states.end(),
                     [](const StateOnDisk& a, const StateOnDisk& b) { return a.used_ms < b.used_ms; });
    for (const StateOnDisk& state : states) insert(state);
    std::reverse(foreign_.begin(), foreign_.end());
    double best = 0;
    for (const auto& [file, entry] : entries_) best = std::max(best, value_per_byte(entry));
    for (auto& [file, entry] : entries_)
        entry.clock = best * static_cast<double>(entry.last_use) / static_cast<double>(n_uses_);
    make_room(0, 0, std::numeric_limits<double>::max());
}

std::optional<std::string> DiskIndex::cheapest() const {
    std::optional<std::string> least;
    double least_worth = 0;
    std::uint64_t least_use = 0;
    for (const auto& [file, entry] : entries_) {
        const double its = worth(entry);
        if (least && (its > least_worth || (its == least_worth && entry.last_use > least_use))) continue;
        least = file;
        least_worth = its;
        least_use = entry.last_use;
    }
    return least;
}

/// GreedyDual, as in PrefixCache; what another model has left goes before all of ours.
bool DiskIndex::make_room(std::uint64_t n_bytes, std::size_t n_files, double newcomer) {
    if (n_bytes > limit_bytes_) return false;
    while (bytes_ + n_bytes > limit_bytes_ || size() + n_files > kMostFiles) {
        if (!foreign_.empty()) {
            bytes_ -= foreign_.back().bytes;
            dropped_.push_back(std::move(foreign_.back()));
            foreign_.pop_back();
            continue;
        }
        const auto least = cheapest();
        if (!least) return false;
        const double its = worth(entries_.at(*least));
        if (clock_ + newcomer < its) {
            clock_ += newcomer;
            return false;
        }
        clock_ = std::max(clock_, its);
        erase(*least);
    }
    return true;
}

void DiskIndex::set_limit(std::uint64_t limit_bytes) {
    limit_bytes_ = limit_bytes;
    make_room(0, 0, std::numeric_limits<double>::max());
}

std::vector<StateOnDisk> DiskIndex::take_dropped() {
    return std::exchange(dropped_, {});
}

}  // namespace pantheon::actors

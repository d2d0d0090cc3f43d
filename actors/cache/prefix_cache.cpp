#include "actors/cache/prefix_cache.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

namespace pantheon::actors {

// ---- finding
// ----------------------------------------------------------------------------------------------------

PrefixCache::Lookup PrefixCache::look(const CacheSpace& space, std::span<const TokenId> prompt) const {
    Lookup found;
    if (!is_enabled()) return found;
    const std::int64_t limit = static_cast<std::int64_t>(prompt.size()) - 1;
    const auto look_in = [&](const CacheSpace& where) {
        const auto tree = trees_.find(where);
        if (tree == trees_.end()) return;
        const RadixTree::Match match = tree->second.match(prompt, limit);
        found.n_shared = std::max(found.n_shared, match.n_shared);
        if (!match.deepest || match.deepest->depth <= found.length) return;
        found.checkpoint = match.deepest->checkpoint;
        found.length = match.deepest->depth;
    };
    look_in(space);
    if (space != kSharedSpace) look_in(kSharedSpace);
    return found;
}

PrefixCache::Lookup PrefixCache::find(const CacheSpace& space, std::span<const TokenId> prompt) {
    const Lookup found = look(space, prompt);
    if (!is_enabled()) return found;
    if (found.length > 0) {
        Entry& entry = entries_.at(found.checkpoint);
        touch(entry);
        ++entry.n_hits;
        ++n_hits_;
    } else {
        ++n_misses_;
    }
    return found;
}

CheckpointId PrefixCache::at(const CacheSpace& space, std::span<const TokenId> tokens) const {
    const auto tree = trees_.find(space);
    if (tree == trees_.end()) return {};
    const auto n = static_cast<std::int64_t>(tokens.size());
    const RadixTree::Node* node = tree->second.match(tokens, n).deepest;
    return node && node->depth == n ? node->checkpoint : CheckpointId();
}

void PrefixCache::touch(Entry& entry) {
    entry.clock = clock_;
    entry.last_use = ++n_uses_;
}

// ---- keeping
// ----------------------------------------------------------------------------------------------------

std::uint64_t PrefixCache::size_of(std::int64_t n_tokens) const {
    return sizes_.image_bytes + sizes_.kv_bytes(n_tokens);
}

std::uint64_t PrefixCache::bytes() const {
    std::uint64_t sum = own_bytes_ + n_holders_.size() * sizes_.block_bytes + reserved_bytes_;
    for (const auto& [space, tree] : trees_) sum += tree.bytes();
    return sum;
}

/// Tokens that need not be evaluated thanks to this checkpoint and to none above it, for each byte that goes
/// with it.
double PrefixCache::value_per_byte(const RadixTree::Node& node) const {
    const std::int64_t n_tokens = node.depth - RadixTree::depth_above(node);
    return static_cast<double>(n_tokens) / static_cast<double>(size_of(n_tokens) + 1);
}

/// What has served before will more likely serve again than what is new; a burst must not keep it for ever.
double PrefixCache::worth(const Entry& entry) const {
    constexpr int kMost = 8;
    return entry.clock + value_per_byte(*entry.node) * (1 + std::min(entry.n_hits, kMost));
}

std::optional<CheckpointId> PrefixCache::add(const CacheSpace& space, std::span<const TokenId> tokens,
                                             CheckpointId base, bool is_asked_for) {
    if (!is_enabled() || tokens.empty() || at(space, tokens) != CheckpointId()) return std::nullopt;
    const auto n_tokens = static_cast<std::int64_t>(tokens.size());
    std::uint64_t n_bytes = size_of(n_tokens);
    const auto base_entry = entries_.find(base);
    const bool has_base = base_entry != entries_.end() && base_entry->second.node->depth <= n_tokens;
    if (has_base) {
        n_bytes -= static_cast<std::uint64_t>(base_entry->second.node->depth / sizes_.block_rows) *
                   sizes_.block_bytes;
        ++base_entry->second.n_dependents;
    }
    RadixTree& tree = trees_[space];
    RadixTree::Node& node = tree.insert(tokens);
    const CheckpointId id(next_id_++);
    node.checkpoint =
        id;  // pending and therefore safe from the search for room, but it shields what is above
    Entry& entry = entries_[id];
    entry.space = space;
    entry.node = &node;
    if (has_base) entry.base = base;
    touch(entry);
    const double newcomer = is_asked_for ? std::numeric_limits<double>::max() : value_per_byte(node);
    if (!make_room(n_bytes, newcomer)) {
        erase(id);
        return std::nullopt;
    }
    entry.reserved_bytes = n_bytes;
    reserved_bytes_ += n_bytes;
    return id;
}

bool PrefixCache::reserve(std::int64_t n_tokens, Arrival what) {
    const std::uint64_t n_bytes = size_of(n_tokens, what);
    if (!is_enabled() || !make_room(n_bytes, std::numeric_limits<double>::max())) return false;
    reserved_bytes_ += n_bytes;
    arriving_bytes_ += n_bytes;
    return true;
}

void PrefixCache::unreserve(std::int64_t n_tokens, Arrival what) {
    reserved_bytes_ -= size_of(n_tokens, what);
    arriving_bytes_ -= size_of(n_tokens, what);
}

bool PrefixCache::confirm(CheckpointId id, const std::vector<std::uint64_t>& kv_blocks) {
    const auto found = entries_.find(id);
    if (found == entries_.end()) return false;
    Entry& entry = found->second;
    if (!entry.is_pending) return true;
    entry.is_pending = false;
    reserved_bytes_ -= entry.reserved_bytes;
    own_bytes_ += own_size_of(entry);
    entry.kv_blocks = kv_blocks;
    for (const std::uint64_t block : kv_blocks) ++n_holders_[block];
    release_base(entry);
    shrink_to_limit();
    return true;
}

void PrefixCache::give_up(CheckpointId id) {
    const auto found = entries_.find(id);
    if (found == entries_.end()) return;
    found->second.n_names = 0;
    std::erase_if(names_, [&](const auto& named) { return named.second.checkpoint == id; });
    erase(id);
}

void PrefixCache::release_base(Entry& entry) {
    const auto base = entries_.find(entry.base);
    if (base != entries_.end()) --base->second.n_dependents;
    entry.base = CheckpointId();
}

// ---- dropping
// ---------------------------------------------------------------------------------------------------

std::optional<CheckpointId> PrefixCache::cheapest() const {
    std::optional<CheckpointId> least;
    double least_worth = 0;
    std::uint64_t least_use = 0;
    for (const auto& [id, entry] : entries_) {
        if (!may_go(entry)) continue;
        const double its = worth(entry);
        if (least && (its > least_worth || (its == least_worth && entry.last_use > least_use))) continue;
        least = id;
        least_worth = its;
        least_use = entry.last_use;
    }
    return least;
}

/// GreedyDual: an entry is worth the clock at its last use plus its value per byte and use, the least worth
/// goes first and the clock moves to its worth, so what is not used ages. A newcomer that is worth less than
/// all others is itself what goes.
bool PrefixCache::make_room(std::uint64_t n_bytes, double newcomer) {
    if (n_bytes > budget_bytes()) return false;
    while (bytes() + n_bytes > budget_bytes()) {
        const auto least = cheapest();
        if (!least) return false;
        const double its = worth(entries_.at(*least));
        if (clock_ + newcomer < its) {
            clock_ += newcomer;
            return false;
        }
        clock_ = std::max(clock_, its);
        evict(*least);
    }
    return true;
}

void PrefixCache::shrink_to_limit() {
    while (bytes() > budget_bytes()) {
        const auto least = cheapest();
        if (!least) return;
        evict(*least);
    }
}

void PrefixCache::evict(CheckpointId id) {
    const Entry& entry = entries_.at(id);
    if (is_saving_ && is_enabled() && entry.copy == Copy::none)
        unsaved_.push_back({id, entry.space, RadixTree::path(*entry.node)});
    erase(id);
}

void PrefixCache::erase(CheckpointId id) {
    const auto found = entries_.find(id);
    Entry& entry = found->second;
    if (entry.is_pending) {
        reserved_bytes_ -= entry.reserved_bytes;
    } else {
        own_bytes_ -= own_size_of(entry);
        dropped_.push_back(id);
        for (const std::uint64_t block : entry.kv_blocks) {
            const auto holders = n_holders_.find(block);
            if (--holders->second == 0) n_holders_.erase(holders);
        }
    }
    release_base(entry);
    const auto tree = trees_.find(entry.space);
    tree->second.remove(*entry.node);
    if (tree->second.is_empty()) trees_.erase(tree);
    entries_.erase(found);
}

void PrefixCache::set_limit(std::uint64_t limit_bytes) {
    limit_bytes_ = limit_bytes;
    // Names that are too many for it would keep everything else out for ever.
    while (named_bytes() > limit_bytes_ / 2) {
        const auto last_use = [this](const auto& named) {
            return entries_.at(named.second.checkpoint).last_use;
        };
        const auto oldest = std::min_element(names_.begin(), names_.end(), [&](const auto& a, const auto& b) {
            return last_use(a) < last_use(b);
        });
        --entries_.at(oldest->second.checkpoint).n_names;
        names_.erase(oldest);
    }
    shrink_to_limit();
}

void PrefixCache::set_ceiling(std::optional<std::uint64_t> ceiling_bytes, bool is_patient) {
    ceiling_bytes_ = ceiling_bytes;
    is_patient_ = is_patient;
    shrink_to_limit();
}

void PrefixCache::clear() {
    trees_.clear();
    entries_.clear();
    n_holders_.clear();
    names_.clear();
    dropped_.clear();
    unsaved_.clear();
    own_bytes_ = 0;
    reserved_bytes_ = arriving_bytes_;
}

std::vector<CheckpointId> PrefixCache::take_dropped() {
    return std::exchange(dropped_, {});
}

// ---- copies on disk
// ---------------------------------------------------------------------------------------------------

void PrefixCache::set_copy(CheckpointId id, Copy copy) {
    const auto found = entries_.find(id);
    if (found == entries_.end()) return;
    found->second.copy = copy;
    shrink_to_limit();
}

std::optional<CheckpointId> PrefixCache::next_to_save() const {
    if (!is_saving_) return std::nullopt;
    std::uint64_t ready_bytes = 0;  // that can be freed without a loss
    std::optional<CheckpointId> next;
    double least = 0;
    for (const auto& [id, entry] : entries_) {
        if (!is_free(entry)) continue;
        if (entry.copy != Copy::none) ready_bytes += own_bytes(*entry.node);
        if (entry.copy != Copy::none || (next && worth(entry) >= least)) continue;
        next = id;
        least = worth(entry);
    }
    if (budget_bytes() + ready_bytes >= bytes() + budget_bytes() / 4) return std::nullopt;
    return next;
}

std::vector<CheckpointId> PrefixCache::unsaved() const {
    std::vector<std::pair<double, CheckpointId>> found;
    if (is_saving_)
        for (const auto& [id, entry] : entries_)
            if (entry.copy == Copy::none) found.emplace_back(worth(entry), id);
    std::sort(found.begin(), found.end(), std::greater<>());
    std::vector<CheckpointId> ids;
    for (const auto& [worth, id] : found) ids.push_back(id);
    return ids;
}

std::vector<PrefixCache::Unsaved> PrefixCache::take_unsaved() {
    return std::exchange(unsaved_, {});
}

// ---- sessions
// ---------------------------------------------------------------------------------------------------

std::uint64_t PrefixCache::named_bytes() const {
    std::uint64_t sum = 0;
    for (const auto& [id, entry] : entries_)
        if (entry.n_names > 0) sum += size_of(entry.node->depth);
    return sum;
}

Status PrefixCache::name_session(const CacheSpace& space, const std::string& name, const CacheSpace& owner,
                                 CheckpointId checkpoint) {
    const auto entry = entries_.find(checkpoint);
    if (entry == entries_.end()) return Error(Code::not_found, "session: the state has not been kept");
    const auto existing = names_.find({space, name});
    if (existing != names_.end() && existing->second.owner != owner)
        return Error(Code::permission_denied, "session: " + name + " belongs to another client");
    Entry* const before = existing == names_.end() ? nullptr : &entries_.at(existing->second.checkpoint);
    if (before) --before->n_names;
    ++entry->second.n_names;
    if (named_bytes() > limit_bytes_ / 2) {
        --entry->second.n_names;
        if (before) ++before->n_names;  // the name stays with what has it
        return Error(Code::resource_exhausted,
                     "session: named states may take half of sessions.bytes, which is used up");
    }
    names_.insert_or_assign(std::pair(space, name), NamedState{owner, checkpoint});
    return {};
}

Status PrefixCache::drop_session(const CacheSpace& space, const std::string& name, const CacheSpace& who,
                                 bool is_admin) {
    const auto found = names_.find({space, name});
    if (found == names_.end()) return Error(Code::not_found, "session: there is none of that name");
    if (found->second.owner != who && !is_admin)
        return Error(Code::permission_denied, "session: it belongs to another client");
    const CheckpointId id = found->second.checkpoint;
    names_.erase(found);
    Entry& entry = entries_.at(id);
    // Whoever drops a session wants its memory back, not a slow decay.
    if (--entry.n_names == 0 && is_free(entry)) erase(id);
    return {};
}

std::optional<Session> PrefixCache::session(const CacheSpace& space, const std::string& name) const {
    const auto found = names_.find({space, name});
    if (found == names_.end()) return std::nullopt;
    const NamedState& named = found->second;
    const std::int64_t n_tokens = entries_.at(named.checkpoint).node->depth;
    return Session{name, named.owner, named.checkpoint, n_tokens, size_of(n_tokens)};
}

std::vector<Session> PrefixCache::sessions(const CacheSpace& space) const {
    std::vector<Session> list;
    for (const auto& [key, named] : names_)
        if (key.first == space) list.push_back(*session(space, key.second));
    return list;
}

}  // namespace pantheon::actors

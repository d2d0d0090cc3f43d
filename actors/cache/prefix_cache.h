// Which checkpoints exist, for whom, and which have to go. Decides and counts; the die holds what is named
// here and is told in the same order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/cache/radix_tree.h"
#include "model/state/checkpoint.h"
#include "runtime/base/ids.h"
#include "runtime/base/status.h"

namespace pantheon::actors {

/// Whose checkpoints: one client identity's, or what was declared shared.
using CacheSpace = std::string;
inline const CacheSpace kSharedSpace = "shared";

/// A named final state.
struct Session {
    std::string name;
    CacheSpace owner;  // who may drop it
    CheckpointId checkpoint;
    std::int64_t n_tokens = 0;
    std::uint64_t bytes = 0;  // at most; what it shares with others counts once in the whole
};

class PrefixCache {
  public:
    PrefixCache() = default;
    /// limit_bytes 0: nothing is kept and nothing is found.
    PrefixCache(const model::CheckpointSizes& sizes, std::uint64_t limit_bytes)
        : sizes_(sizes), limit_bytes_(limit_bytes) {}

    struct Lookup {
        CheckpointId checkpoint;    // 0: start from nothing
        std::int64_t length = 0;    // of the checkpoint, at most one less than the prompt's
        std::int64_t n_shared = 0;  // how far the prompt agrees with any kept sequence
    };
    /// Where a request of this space may resume: its own checkpoints and the shared ones serve it. Counts as
    /// a hit or a miss, and as a use of what it found.
    Lookup find(const CacheSpace& space, std::span<const TokenId> prompt);
    /// The same, and counts as nothing.
    Lookup look(const CacheSpace& space, std::span<const TokenId> prompt) const;

    /// Room for the checkpoint of a sequence at its present length, to be confirmed or given up when the die
    /// has answered. `base`: an earlier checkpoint of the same sequence, whose KV it shares; 0: none. Makes
    /// room by dropping what is worth less per byte; `is_asked_for`: by dropping whatever may go. Nothing:
    /// there is one already, or there is no room.
    std::optional<CheckpointId> add(const CacheSpace& space, std::span<const TokenId> tokens,
                                    CheckpointId base, bool is_asked_for = false);
    /// The die holds it, in these KV blocks. False: it is not wanted any more, the die may drop it.
    bool confirm(CheckpointId id, const std::vector<std::uint64_t>& kv_blocks);
    /// The die does not hold it.
    void give_up(CheckpointId id);
    /// Holds back room for a state of that length that is not in the cache: a checkpoint on its way in from
    /// elsewhere, or what a parked sequence is, in f32. False: there is none.
    enum class Arrival : std::uint8_t { checkpoint, parked };
    bool reserve(std::int64_t n_tokens, Arrival what = Arrival::checkpoint);
    void unreserve(std::int64_t n_tokens, Arrival what = Arrival::checkpoint);
    /// The checkpoint of exactly these tokens; 0: none.
    CheckpointId at(const CacheSpace& space, std::span<const TokenId> tokens) const;
    /// What led to a checkpoint that is there.
    std::vector<TokenId> tokens_of(CheckpointId id) const { return RadixTree::path(*entries_.at(id).node); }
    const CacheSpace& space_of(CheckpointId id) const { return entries_.at(id).space; }
    bool contains(CheckpointId id) const { return entries_.contains(id); }

    /// Keeps the checkpoint under a name until the session is dropped, in place of what had the name.
    /// resource_exhausted: named states may take half of the bytes; permission_denied: another's name. Then
    /// the name stays where it is.
    Status name_session(const CacheSpace& space, const std::string& name, const CacheSpace& owner,
                        CheckpointId checkpoint);
    /// not_found; permission_denied when `who` neither owns it nor is an admin.
    Status drop_session(const CacheSpace& space, const std::string& name, const CacheSpace& who,
                        bool is_admin = false);
    std::optional<Session> session(const CacheSpace& space, const std::string& name) const;
    std::vector<Session> sessions(const CacheSpace& space) const;  // by name

    /// Names go, those first that have not been used for longest, until named states take half of it at most.
    void set_limit(std::uint64_t limit_bytes);
    /// A bound below the limit for as long as memory is short; nothing: the limit alone. What is worth least
    /// goes at once or, when it is patient and copies are made, once it has one; named states stay.
    void set_ceiling(std::optional<std::uint64_t> ceiling_bytes, bool is_patient = false);
    /// The die and all it held are gone.
    void clear();
    /// What the die has to drop since the last call.
    std::vector<CheckpointId> take_dropped();

    /// Whether the state also lies on disk. refused: it could not be written or was not worth it.
    enum class Copy : std::uint8_t { none, underway, saved, refused };
    /// Whether copies are made at all; false, as at the start: the three below have nothing to say.
    void set_saving(bool is_saving) { is_saving_ = is_saving; }
    /// Nothing happens to a checkpoint that has gone meanwhile.
    void set_copy(CheckpointId id, Copy copy);
    /// The state that should be written next, so that what has to go soon has a copy by then: a quarter of
    /// the budget is to be free or taken by states that have one. Those that will go first come first.
    std::optional<CheckpointId> next_to_save() const;
    /// All without a copy, named and promised ones too, the worthiest first.
    std::vector<CheckpointId> unsaved() const;
    struct Unsaved {
        CheckpointId id;
        CacheSpace space;
        std::vector<TokenId> tokens;
    };
    /// Of those that take_dropped() will name: what went for want of room and has no copy, the least worthy
    /// first. The die still holds them until it is told.
    std::vector<Unsaved> take_unsaved();

    bool is_enabled() const { return limit_bytes_ > 0; }
    std::uint64_t bytes() const;
    std::uint64_t limit_bytes() const { return limit_bytes_; }
    /// The limit or, where there is one and it is lower, the ceiling.
    std::uint64_t budget_bytes() const {
        return std::min(limit_bytes_, ceiling_bytes_.value_or(limit_bytes_));
    }
    std::uint64_t n_hits() const { return n_hits_; }
    std::uint64_t n_misses() const { return n_misses_; }
    std::size_t size() const { return entries_.size(); }

  private:
    struct Entry {
        CacheSpace space;
        RadixTree::Node* node = nullptr;
        std::vector<std::uint64_t> kv_blocks;
        bool is_pending = true;
        std::uint64_t reserved_bytes = 0;  // while pending
        CheckpointId base;                 // while pending: its blocks are counted there
        int n_dependents = 0;              // pending checkpoints that count on our blocks
        int n_names = 0;
        Copy copy = Copy::none;
        double clock = 0;  // of the last use
        int n_hits = 0;
        std::uint64_t last_use = 0;
    };
    struct NamedState {
        CacheSpace owner;
        CheckpointId checkpoint;
    };

    void touch(Entry& entry);
    double value_per_byte(const RadixTree::Node& node) const;
    double worth(const Entry& entry) const;
    bool is_free(const Entry& entry) const {
        return !entry.is_pending && entry.n_dependents == 0 && entry.n_names == 0;
    }
    bool may_go(const Entry& entry) const {
        const bool waits =
            is_saving_ && is_patient_ && (entry.copy == Copy::none || entry.copy == Copy::underway);
        return is_free(entry) && !waits;
    }
    std::uint64_t own_bytes(const RadixTree::Node& node) const {
        return size_of(node.depth - RadixTree::depth_above(node));
    }
    std::optional<CheckpointId> cheapest() const;
    bool make_room(std::uint64_t n_bytes, double newcomer);
    void shrink_to_limit();
    void evict(CheckpointId id);
    void erase(CheckpointId id);
    void release_base(Entry& entry);
    std::uint64_t named_bytes() const;
    std::uint64_t size_of(std::int64_t n_tokens) const;
    std::uint64_t size_of(std::int64_t n_tokens, Arrival what) const {
        return size_of(n_tokens) + (what == Arrival::parked ? sizes_.parked_extra_bytes : 0);
    }
    std::uint64_t own_size_of(const Entry& entry) const {
        return sizes_.image_bytes + sizes_.half_bytes(entry.node->depth);
    }

    model::CheckpointSizes sizes_;
    std::uint64_t limit_bytes_ = 0;
    std::optional<std::uint64_t> ceiling_bytes_;
    std::map<CacheSpace, RadixTree> trees_;
    std::unordered_map<CheckpointId, Entry> entries_;
    std::unordered_map<std::uint64_t, int> n_holders_;  // of each KV block
    std::map<std::pair<CacheSpace, std::string>, NamedState> names_;
    std::vector<CheckpointId> dropped_;
    std::vector<Unsaved> unsaved_;
    bool is_saving_ = false;
    bool is_patient_ = false;
    std::uint64_t next_id_ = 1;
    std::uint64_t own_bytes_ = 0;       // of all that are confirmed: what they do not share
    std::uint64_t reserved_bytes_ = 0;  // by pending checkpoints and what is arriving
    std::uint64_t arriving_bytes_ = 0;
    std::uint64_t n_uses_ = 0;
    double clock_ = 0;  // GreedyDual: the worth of what was dropped last
    std::uint64_t n_hits_ = 0, n_misses_ = 0;
};

}  // namespace pantheon::actors

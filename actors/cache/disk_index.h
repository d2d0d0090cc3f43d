// Which checkpoints lie on disk, for whom, and which have to go. Decides and counts; the store holds the
// files and is told in the same order.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/cache/prefix_cache.h"
#include "actors/cache/radix_tree.h"
#include "runtime/base/ids.h"

namespace pantheon::actors {

/// A checkpoint in a file.
struct StateOnDisk {
    std::string file;  // its name within the folder
    CacheSpace space;
    std::vector<TokenId> tokens;  // none: of another model or version, which counts but serves nobody
    std::uint64_t bytes = 0;
    std::int64_t used_ms = 0;  // of the file's clock: written or read last

    friend bool operator==(const StateOnDisk&, const StateOnDisk&) = default;
};

class DiskIndex {
  public:
    /// Reading their heads at the start must not take for ever, nor the search for what has to go.
    static constexpr std::size_t kMostFiles = 1024;

    struct Lookup {
        std::string file;           // empty: none
        std::int64_t length = 0;    // of the checkpoint, at most one less than the prompt's
        std::int64_t n_shared = 0;  // how far the prompt agrees with any of them
    };
    /// As PrefixCache::look().
    Lookup look(const CacheSpace& space, std::span<const TokenId> prompt) const;
    /// The file of exactly these tokens; nothing: none that is written.
    std::optional<std::string> at(const CacheSpace& space, std::span<const TokenId> tokens) const;
    /// Nothing: no such file.
    std::optional<StateOnDisk> describe(const std::string& file) const;

    /// Room for a file that is to be written; what is worth less goes. Later add() or cancel(). False: it is
    /// there or being written already, is worth less than all others, or there is no room.
    bool reserve(const CacheSpace& space, const std::vector<TokenId>& tokens, std::uint64_t n_bytes);
    void cancel(const CacheSpace& space, const std::vector<TokenId>& tokens);
    /// It has been written.
    void add(const StateOnDisk& state);
    /// It has been read.
    void use(const std::string& file);
    /// The file is to go.
    void drop(const std::string& file);
    /// What the folder holds, in place of what was known.
    void reset(std::vector<StateOnDisk> states);

    /// 0: nothing is found, nothing new is written, what is there goes.
    void set_limit(std::uint64_t limit_bytes);
    /// What the store has to remove since the last call.
    std::vector<StateOnDisk> take_dropped();

    bool is_enabled() const { return limit_bytes_ > 0; }
    std::uint64_t limit_bytes() const { return limit_bytes_; }
    /// Files, and those that are being written.
    std::uint64_t bytes() const { return bytes_; }
    std::size_t size() const { return entries_.size() + foreign_.size() + pending_.size(); }

  private:
    struct Entry {
        CheckpointId id;  // its name in the tree
        CacheSpace space;
        RadixTree::Node* node = nullptr;
        std::uint64_t bytes = 0;
        std::int64_t used_ms = 0;
        double clock = 0;  // of the last use
        std::uint64_t last_use = 0;
    };
    struct Pending {
        CacheSpace space;
        std::vector<TokenId> tokens;
        std::uint64_t bytes = 0;
    };

    double value_per_byte(const Entry& entry) const;
    double worth(const Entry& entry) const { return entry.clock + value_per_byte(entry); }
    bool make_room(std::uint64_t n_bytes, std::size_t n_files, double newcomer);
    void insert(const StateOnDisk& state);
    std::optional<std::string> cheapest() const;
    void erase(const std::string& file);
    std::vector<Pending>::iterator find_pending(const CacheSpace& space, const std::vector<TokenId>& tokens);
    StateOnDisk state_of(const std::string& file, const Entry& entry) const;

    std::uint64_t limit_bytes_ = 0;
    std::uint64_t bytes_ = 0;
    std::map<CacheSpace, RadixTree> trees_;
    std::unordered_map<std::string, Entry> entries_;       // by file
    std::unordered_map<CheckpointId, std::string> files_;  // by name in the tree
    std::vector<StateOnDisk> foreign_;                     // newest first
    std::vector<Pending> pending_;
    std::vector<StateOnDisk> dropped_;
    std::uint64_t next_id_ = 1;
    std::uint64_t n_uses_ = 0;
    double clock_ = 0;  // GreedyDual: the worth of what went last
};

}  // namespace pantheon::actors

// What the actors work with: limits, defaults and the model. Runtime fills it from the configuration. A
// snapshot never changes; a reload makes a new one, which the supervisor hands round.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/memory/ladder_policy.h"
#include "actors/memory/readings.h"
#include "model/chat/chat_template.h"
#include "model/executor.h"
#include "model/sampler/sampler.h"
#include "model/state/checkpoint_codec.h"
#include "model/tokenizer/tokenizer.h"
#include "runtime/base/ids.h"
#include "runtime/base/status.h"

namespace pantheon::actors {

struct SamplingDefaults {
    float temperature = 1.0F;
    std::int32_t top_k = 20;
    float top_p = 0.95F;
    float min_p = 0.0F;
    float repeat_penalty = 1.0F;
    float presence_penalty = 0.0F;
    float frequency_penalty = 0.0F;
};

struct Limits {
    std::int32_t n_ctx = 4096;               // KV rows a slot may hold; a longer prompt is refused
    bool slides = false;                     // kv.overflow: a reply may go on past n_ctx
    std::int64_t max_tokens = 4096;          // limits.max_tokens: default and upper bound of a reply
    std::size_t queue = 64;                  // scheduler.queue: requests that may wait
    std::size_t per_client = 256;            // live requests of one connection
    std::chrono::milliseconds max_gap{200};  // scheduler.max_gap_ms
    std::chrono::milliseconds hang{10000};   // die.hang_ms
    std::chrono::milliseconds stall{30000};  // ipc.stall_ms
    std::chrono::milliseconds drain{30000};  // daemon.drain_s
    std::vector<std::uint32_t> admin_uids;   // besides root and the daemon's own
};

/// What turns text into tokens and back, shared by all engines of one model.
struct TextModel {
    std::shared_ptr<const model::Tokenizer> tokenizer;
    model::TemplateFamily family = model::TemplateFamily::qwen35;
    SamplingDefaults sampling;
};

/// For `status`, fixed once the model is loaded.
struct ModelInfo {
    std::string path, name, fingerprint;
    std::int32_t n_layer = 0;
    std::int32_t n_vocab = 0;
    bool has_nextn = false;  // the file holds a multi-token-prediction block
    std::uint64_t weights_bytes = 0;
};

/// The prefix cache of an engine.
struct CacheSettings {
    std::int64_t every = 0;         // sessions.every: tokens between checkpoints; 0: no such ones
    std::string dir;                // sessions.dir: where sessions are saved; empty: nowhere
    std::uint64_t limit_bytes = 0;  // sessions.bytes: for everything that is kept; 0: no cache
    std::uint64_t disk_bytes = 0;   // sessions.disk_bytes: for what is spilled into dir; 0: nothing is
};

/// The memory ladder.
struct MemorySettings {
    LadderSettings ladder;
    std::shared_ptr<ReadingSource> source;  // null: nothing is read, the ladder stays where it is
};

struct EngineSettings {
    std::string name = "main";
    std::string die_id = "cpu";  // as the configuration spells it
    std::string die_kind = "cpu";
    std::string isa = "scalar";
    std::vector<std::pair<std::string, std::string>> ops;  // op and implementation, for status
    int n_threads = 1;
    model::Repack repack = model::Repack::none;  // packed copies of weights, made by the die beside its steps
    std::uint64_t packed_bytes = 0;              // what they take once all are made
    int n_slots = 16;                            // sequences that the die holds at once
    std::uint64_t kv_pool_bytes = 0;             // for the KV of all of them together; 0: whatever they need
    /// Sequences that may be under way, parked ones included.
    int n_seats() const { return n_slots + kParkingSeats; }
    static constexpr int kParkingSeats = 16;
    model::CheckpointSizes checkpoint;                    // what the state of a sequence takes
    std::optional<model::CheckpointSizes> in_q4_0;        // with KV in q4_0; nothing: that is kv.format
    std::shared_ptr<const model::CheckpointCodec> codec;  // how one is saved; null: it cannot be
    // sessions.f16: how the prefix cache keeps recurrent states, in memory and on disk.
    model::ImageFormat image_format = model::ImageFormat::f32;
    bool is_die_detached = true;  // false under the test scheduler
    /// Makes the die's executor on the die's own thread; called again when a die is replaced.
    std::function<Result<std::unique_ptr<model::Executor>>()> make_executor;
};

struct DaemonSettings;
using SettingsPtr = std::shared_ptr<const DaemonSettings>;

/// One key whose value in the file differs from the one in force, both as TOML.
struct ConfigChange {
    std::string key, before, after;
};

/// What came of reading the configuration again: an error and no change at all, or these changes.
struct ReloadOutcome {
    std::string file;
    bool is_dry_run = false;
    std::optional<Error> error;  // every problem of the file, one a line, each with its line and column
    std::vector<ConfigChange> applied;          // in a dry run: what would be
    std::vector<ConfigChange> pending_restart;  // differ from what the process was started with
    SettingsPtr settings;                       // the new snapshot; null after an error or a dry run
};

/// The configuration file as the actors see it. Used by one actor at a time; may block.
class ConfigSource {
  public:
    virtual ~ConfigSource() = default;
    /// Reads and checks the whole file, then applies every live key or none. `in_force`: the snapshot that
    /// the new one is made from.
    virtual ReloadOutcome reload(const DaemonSettings& in_force, bool is_dry_run) = 0;
};

struct DaemonSettings {
    std::string version;
    std::string config_path;                      // empty: defaults only
    std::vector<std::string> pending_restart;     // keys of the file that wait for a restart
    std::shared_ptr<ConfigSource> config_source;  // null: there is nothing to reload
    ModelInfo model;
    TextModel text;
    Limits limits;
    CacheSettings cache;
    MemorySettings memory;
    EngineSettings engine;
};

}  // namespace pantheon::actors

// The configuration as the daemon uses it: an immutable snapshot, every value checked, every default
// resolved. Keys, defaults, ranges and help stand once, in schema.cpp; load.h makes a snapshot from a file.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/executor.h"
#include "runtime/base/log.h"

namespace pantheon::config {

struct ModelSection {
    std::string path;
};

struct IpcSection {
    std::string endpoint;
    std::int64_t max_unread = 0;        // events that may wait in the daemon for one client
    std::chrono::milliseconds stall{};  // how long a client may leave its stream unread
    std::vector<std::string> admins;    // as written
    std::vector<std::uint32_t> admin_uids;
};

/// One model replica on its dies.
struct EngineSection {
    std::string name;
    std::vector<std::string> dies;
    std::int64_t slots = 0;
    std::optional<std::int64_t> split;  // nothing: chosen by the placement
    std::string multiplex;
};

struct CpuSection {
    std::int64_t threads = 0;
    bool repack = true;
};

struct KvSection {
    std::int64_t n_ctx = 0;
    model::KvFormat format = model::KvFormat::f16;
    std::int64_t sink = 0;
    std::int64_t window = 0;
    model::KvOverflow overflow = model::KvOverflow::stop;
    std::optional<std::int64_t> pool_bytes;  // nothing: chosen when the model is known
};

struct DieSection {
    std::chrono::milliseconds hang{};
};

struct SchedulerSection {
    std::chrono::milliseconds max_gap{};
    std::int64_t queue = 0;
};

struct SessionsSection {
    std::int64_t every = 0;  // tokens between checkpoints; 0: none
    std::int64_t bytes = 0;
    bool f16 = false;  // recurrent states of what is kept
    std::string dir;
    std::int64_t disk_bytes = 0;
};

/// The memory ladder: when it gives way, and how far.
struct MemorySection {
    bool ladder = true;
    std::string readings_dir;                      // empty: the host's own files
    std::optional<std::int64_t> tight_free_bytes;  // nothing: a part of the limit
    std::optional<std::int64_t> critical_free_bytes;
    std::int64_t tight_pressure = 0;  // percent
    std::int64_t critical_pressure = 0;
    std::chrono::milliseconds dwell{};
    std::chrono::milliseconds step{};
    std::int64_t slots_tight = 0;
    std::int64_t slots_critical = 0;
    std::int64_t cache_keep = 0;  // percent
};

struct LimitsSection {
    std::int64_t max_tokens = 0;
};

/// Nothing: the model file's general.sampling.*, else the protocol's default.
struct SamplingSection {
    std::optional<double> temperature;
    std::optional<std::int64_t> top_k;
    std::optional<double> top_p;
    std::optional<double> min_p;
    std::optional<double> repeat_penalty;
    std::optional<double> presence_penalty;
    std::optional<double> frequency_penalty;
};

struct MetricsSection {
    std::string listen;
};

struct DaemonSection {
    std::chrono::seconds drain{};
    bool watch = false;
};

struct LogSection {
    LogLevel level = LogLevel::info;
};

struct Config {
    std::string file;  // where it was read from, as given
    ModelSection model;
    IpcSection ipc;
    std::vector<EngineSection> engines;  // exactly one in this version
    CpuSection cpu;
    KvSection kv;
    DieSection die;
    SchedulerSection scheduler;
    SessionsSection sessions;
    MemorySection memory;
    LimitsSection limits;
    SamplingSection sampling;
    MetricsSection metrics;
    DaemonSection daemon;
    LogSection log;
};

}  // namespace pantheon::config

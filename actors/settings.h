// What the actors are told once: limits, defaults and the model. Runtime fills it from the configuration.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "model/chat/chat_template.h"
#include "model/executor.h"
#include "model/sampler/sampler.h"
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

struct EngineSettings {
    std::string name = "main";
    std::string die_id = "cpu";  // as the configuration spells it
    std::string die_kind = "cpu";
    std::string isa = "scalar";
    std::vector<std::pair<std::string, std::string>> ops;  // op and implementation, for status
    int n_threads = 1;
    int n_slots = 16;
    bool is_die_detached = true;  // false under the test scheduler
    /// Makes the die's executor on the die's own thread; called again when a die is replaced.
    std::function<Result<std::unique_ptr<model::Executor>>()> make_executor;
};

struct DaemonSettings {
    std::string version;
    std::string config_path;  // empty: defaults only
    ModelInfo model;
    TextModel text;
    Limits limits;
    EngineSettings engine;
};
using SettingsPtr = std::shared_ptr<const DaemonSettings>;

}  // namespace pantheon::actors

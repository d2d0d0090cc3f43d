// A model that runs in this process, for the commands that compute without a daemon.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "model/executor.h"
#include "model/gguf/gguf_file.h"
#include "runtime/base/status.h"

namespace pantheon::cli {

struct LocalSettings {
    model::Backend backend = model::Backend::ref;
    model::KvSettings kv{model::KvFormat::f32};
    int n_threads = 1;
};

/// --kv, --sink and --window as given; absent: f32 on ref, where numbers are to be exact, and f16 on cpu;
/// with q4_0 what the daemon does by default.
struct KvOptions {
    std::optional<std::string> format;
    std::optional<int> sink, window;
};

/// From --backend, those, and --threads (absent: the physical cores allowed). What does not exist is
/// unimplemented; --sink or --window without q4_0 is invalid_argument.
Result<LocalSettings> local_settings(const std::string& backend, const KvOptions& kv,
                                     std::optional<int> threads);

struct LocalRun {
    std::unique_ptr<model::Executor> executor;  // with one slot
    std::int64_t n_vocab = 0;
};

/// Maps the file's weights; the slot holds n_tokens positions.
Result<LocalRun> open_local_run(std::shared_ptr<const model::GgufFile> file, const LocalSettings& settings,
                                std::size_t n_tokens);

/// "123 of 500 tokens" on standard error, rewritten in place, on a terminal only.
class TokenProgress {
  public:
    explicit TokenProgress(std::size_t n_total);
    ~TokenProgress();
    TokenProgress(const TokenProgress&) = delete;
    TokenProgress& operator=(const TokenProgress&) = delete;

    /// cancelled once the user has typed Ctrl-C.
    Status advance(std::int64_t n_tokens);

  private:
    std::size_t n_total_;
    bool is_shown_;
    std::int64_t n_done_ = 0;
};

}  // namespace pantheon::cli

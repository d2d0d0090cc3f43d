// `score`: the logits after every token of a sequence, into a file.
#include "model/score.h"

#include <algorithm>
#include <bit>
#include <sstream>

#include "model/qwen35moe/weights.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/console.h"
#include "runtime/cli/local_model.h"
#include "runtime/cli/numbers.h"
#include "runtime/cli/output_file.h"
#include "runtime/config/host_defaults.h"

namespace pantheon::cli {
namespace {

static_assert(std::endian::native == std::endian::little,
              "OUT.f32 is little-endian, written as it lies in memory");

constexpr int kMinContext = 16;
constexpr int kDefaultChunk = 64;

Result<model::Backend> backend_of(const ScoreOptions& options) {
    if (options.backend == "ref") return model::Backend::ref;
    if (options.backend == "cpu") return model::Backend::cpu;
    return Error(Code::unimplemented,
                 "--backend " + options.backend + " is not available in this version; want ref or cpu");
}

/// The default is f32 where numbers are to be exact, f16 where they are to come fast.
Result<model::KvFormat> kv_format(const ScoreOptions& options, model::Backend backend) {
    const std::string name = options.kv.value_or(backend == model::Backend::ref ? "f32" : "f16");
    if (name == "f32") return model::KvFormat::f32;
    if (name == "f16") return model::KvFormat::f16;
    return Error(Code::unimplemented, "--kv " + name + " is not available in this version; want f32 or f16");
}

/// "123 of 500 tokens", rewritten in place, on a terminal only.
class Progress {
  public:
    explicit Progress(std::size_t n_total) : n_total_(n_total), is_shown_(is_err_terminal()) {}
    ~Progress() {
        if (is_shown_ && n_done_ > 0) write_err("\n");
    }
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    void advance(std::int64_t n_tokens) {
        n_done_ += n_tokens;
        if (!is_shown_) return;
        std::ostringstream line;
        line << '\r' << n_done_ << " of " << n_total_ << " tokens";
        write_err(line.str());
    }

  private:
    std::size_t n_total_;
    bool is_shown_;
    std::int64_t n_done_ = 0;
};

Status write_logits(const ScoreOptions& options, const std::vector<TokenId>& ids) {
    auto backend = backend_of(options);
    if (!backend) return std::move(backend).error();
    auto format = kv_format(options, *backend);
    if (!format) return std::move(format).error();
    auto file = open_model(options.model);
    if (!file) return std::move(file).error();
    auto weights = model::Weights::load(*file);
    if (!weights) return std::move(weights).error().with_context(options.model);

    model::ExecutorConfig config;
    config.backend = *backend;
    config.n_threads = options.threads ? *options.threads : static_cast<int>(config::host_defaults().n_cores);
    config.n_ctx = std::max(kMinContext, static_cast<int>(ids.size()));
    config.kv_format = *format;
    auto executor = model::Executor::create(*weights, config);
    if (!executor) return std::move(executor).error();

    auto out = OutputFile::create(options.logits);
    if (!out) return std::move(out).error();
    Progress progress(ids.size());
    Status scored =
        model::score(**executor, SlotId(0), ids, (*weights)->n_vocab(), options.chunk.value_or(kDefaultChunk),
                     [&](const model::StepLogits& rows) -> Status {
                         if (interrupted()) return Error(Code::cancelled, "interrupted");
                         progress.advance(rows.n_rows);
                         const auto n_floats = static_cast<std::size_t>(rows.n_rows * rows.n_vocab);
                         return out->write(std::as_bytes(std::span(rows.data, n_floats)));
                     });
    if (!scored) return scored;
    return out->commit();
}

}  // namespace

int run_score(const ScoreOptions& options) {
    const auto text = read_input(options.tokens);
    if (!text) {
        complain(text.error().message());
        return kUsage;
    }
    const auto ids = parse_token_ids(*text);
    if (!ids) {
        complain(options.tokens + ": " + ids.error().message());
        return kUsage;
    }
    handle_interrupts(OnInterrupt::raise_flag);
    const Status status = write_logits(options, *ids);
    if (status) return kDone;
    if (interrupted()) return kInterrupted;
    complain(status.error().to_string());
    return kRefused;
}

}  // namespace pantheon::cli

#include "runtime/cli/local_run.h"

#include <algorithm>
#include <iterator>
#include <sstream>
#include <string_view>

#include "model/qwen35moe/weights.h"
#include "runtime/cli/console.h"
#include "runtime/config/host_defaults.h"

namespace pantheon::cli {
namespace {

constexpr int kMinContext = 16;

struct NamedFormat {
    std::string_view name;
    model::KvFormat format;
};
constexpr NamedFormat kFormats[] = {{"f32", model::KvFormat::f32},
                                    {"f16", model::KvFormat::f16},
                                    {"q8_0", model::KvFormat::q8_0},
                                    {"q4_0", model::KvFormat::q4_0}};

Error missing(const std::string& option, const std::string& value, const char* known) {
    return Error(Code::unimplemented,
                 option + " " + value + " is not available in this version; want " + known);
}

}  // namespace

Result<LocalSettings> local_settings(const std::string& backend, const KvOptions& kv,
                                     std::optional<int> threads) {
    LocalSettings settings;
    if (backend == "cpu")
        settings.backend = model::Backend::cpu;
    else if (backend != "ref")
        return missing("--backend", backend, "ref or cpu");
    const std::string format = kv.format.value_or(settings.backend == model::Backend::ref ? "f32" : "f16");
    const auto* known = std::find_if(std::begin(kFormats), std::end(kFormats),
                                     [&](const auto& known_format) { return known_format.name == format; });
    if (known == std::end(kFormats))
        return Error(Code::invalid_argument, "--kv " + format + ": want f32, f16, q8_0 or q4_0");
    settings.kv.format = known->format;
    if ((kv.sink || kv.window) && settings.kv.format != model::KvFormat::q4_0)
        return Error(Code::invalid_argument, "--sink and --window belong to --kv q4_0");
    settings.kv.sink = kv.sink.value_or(settings.kv.sink);
    settings.kv.window = kv.window.value_or(settings.kv.window);
    settings.n_threads = threads ? *threads : static_cast<int>(config::host_defaults().n_cores);
    return settings;
}

Result<LocalRun> open_local_run(std::shared_ptr<const model::GgufFile> file, const LocalSettings& settings,
                                std::size_t n_tokens) {
    const std::string path = file->path();
    auto weights = model::Weights::load(std::move(file));
    if (!weights) return std::move(weights).error().with_context(path);
    model::ExecutorConfig config;
    config.backend = settings.backend;
    config.n_threads = settings.n_threads;
    config.n_ctx = std::max(kMinContext, static_cast<int>(n_tokens));
    config.kv = settings.kv;
    auto executor = model::Executor::create(*weights, config);
    if (!executor) return std::move(executor).error();
    return LocalRun{*std::move(executor), (*weights)->n_vocab()};
}

TokenProgress::TokenProgress(std::size_t n_total) : n_total_(n_total), is_shown_(is_err_terminal()) {}

TokenProgress::~TokenProgress() {
    if (is_shown_ && n_done_ > 0) write_err("\n");
}

Status TokenProgress::advance(std::int64_t n_tokens) {
    if (interrupted()) return Error(Code::cancelled, "interrupted");
    n_done_ += n_tokens;
    if (!is_shown_) return {};
    std::ostringstream line;
    line << '\r' << n_done_ << " of " << n_total_ << " tokens";
    write_err(line.str());
    return {};
}

}  // namespace pantheon::cli

// `perplexity`: how well a model predicts a text.
#include "model/perplexity.h"

#include <fmt/format.h>

#include "runtime/cli/commands.h"
#include "runtime/cli/console.h"
#include "runtime/cli/local_model.h"
#include "runtime/cli/local_run.h"
#include "runtime/cli/utf8_repair.h"

namespace pantheon::cli {
namespace {

constexpr int kChunk = 64;
constexpr int kDefaultContext = 4096;  // kv.n_ctx of the daemon

Result<std::string> measure(const PerplexityOptions& options, const std::string& text) {
    const auto settings =
        local_settings(options.backend, {options.kv, options.sink, options.window}, options.threads);
    if (!settings) return settings.error();
    auto file = open_model(options.model);
    if (!file) return std::move(file).error();
    const auto tokenizer = load_tokenizer(**file);
    if (!tokenizer) return tokenizer.error();
    std::vector<TokenId> ids = (*tokenizer)->encode(text, false);
    const std::size_t n_all = ids.size();
    ids.resize(std::min(n_all, static_cast<std::size_t>(options.n_ctx.value_or(kDefaultContext))));

    const auto run = open_local_run(*std::move(file), *settings, ids.size());
    if (!run) return run.error();
    TokenProgress progress(ids.size());
    const auto result = model::perplexity(*run->executor, SlotId(0), ids, run->n_vocab, kChunk,
                                          [&](std::int64_t n) { return progress.advance(n); });
    if (!result) return result.error();
    return fmt::format(
        "perplexity {:.6f}, mean negative log-likelihood {:.6f} ± {:.6f} nats over {} tokens{}\n",
        result->value, result->mean_nll, result->error, result->n_predicted,
        ids.size() < n_all ? fmt::format(" (the text has {} more)", n_all - ids.size()) : "");
}

}  // namespace

int run_perplexity(const PerplexityOptions& options) {
    const auto text = read_input(options.text);
    if (!text) {
        complain(text.error().message());
        return kUsage;
    }
    handle_interrupts(OnInterrupt::raise_flag);
    const auto line = measure(options, repair_utf8(*text));
    if (line) return write_out(*line) ? kDone : kRefused;
    if (interrupted()) return kInterrupted;
    complain(line.error().to_string());
    return kRefused;
}

}  // namespace pantheon::cli

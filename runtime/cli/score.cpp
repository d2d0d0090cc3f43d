// `score`: the logits after every token of a sequence, into a file.
#include "model/score.h"

#include <bit>

#include "runtime/cli/commands.h"
#include "runtime/cli/console.h"
#include "runtime/cli/local_model.h"
#include "runtime/cli/local_run.h"
#include "runtime/cli/numbers.h"
#include "runtime/cli/output_file.h"

namespace pantheon::cli {
namespace {

static_assert(std::endian::native == std::endian::little,
              "OUT.f32 is little-endian, written as it lies in memory");

constexpr int kDefaultChunk = 64;

Status write_logits(const ScoreOptions& options, const std::vector<TokenId>& ids) {
    const auto settings =
        local_settings(options.backend, {options.kv, options.sink, options.window}, options.threads);
    if (!settings) return settings.error();
    auto file = open_model(options.model);
    if (!file) return std::move(file).error();
    const auto run = open_local_run(*std::move(file), *settings, ids.size());
    if (!run) return run.error();
    auto out = OutputFile::create(options.logits);
    if (!out) return std::move(out).error();
    TokenProgress progress(ids.size());
    Status scored =
        model::score(*run->executor, SlotId(0), ids, run->n_vocab, options.chunk.value_or(kDefaultChunk),
                     [&](const model::StepLogits& rows) -> Status {
                         if (Status ok = progress.advance(rows.n_rows); !ok) return ok;
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

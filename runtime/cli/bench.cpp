// `bench`: tokens a second of a model in this process, beside what the host's memory allows.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "model/qwen35moe/weights.h"
#include "model/step_bytes.h"
#include "runtime/base/json.h"
#include "runtime/base/units.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/console.h"
#include "runtime/cli/local_model.h"
#include "runtime/cli/local_run.h"
#include "runtime/cli/read_bandwidth.h"
#include "runtime/config/host_defaults.h"

namespace pantheon::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPromptChunk = 512;  // the most that the daemon evaluates at once

struct Row {
    std::string test;  // pp: reading a prompt, tg: generating
    int n = 0, batch = 1, depth = 0;
    double n_bytes = 0;             // of one repetition, by the byte model
    std::vector<double> seconds{};  // of each repetition

    /// Tokens a second of the repetition that took longer than this share of the others.
    double tps(double share) const {
        std::vector<double> sorted = seconds;
        std::ranges::sort(sorted);
        const auto last = static_cast<double>(sorted.size() - 1);
        return static_cast<double>(n) * batch / sorted[static_cast<std::size_t>(std::lround(share * last))];
    }
    double gbps() const { return n_bytes / 1e9 / (static_cast<double>(n) * batch) * tps(0.5); }
};

struct Subject {
    std::string model, name, isa, repack, kv;
    int n_threads = 1;
    std::uint64_t weight_bytes = 0, repack_bytes = 0;
    double host_bytes_per_s = 0;
};

const char* repack_name(model::Repack repack) {
    return repack == model::Repack::all ? "all" : repack == model::Repack::dense ? "dense" : "none";
}

/// "pp 512 at depth 4096, run 2 of 3", rewritten in place, on a terminal only.
class RowProgress {
  public:
    RowProgress() : is_shown_(is_err_terminal()) {}
    ~RowProgress() { say(""); }
    RowProgress(const RowProgress&) = delete;
    RowProgress& operator=(const RowProgress&) = delete;
    void say(const std::string& what) const {
        if (is_shown_) write_err("\r\x1b[K" + what);
    }

  private:
    bool is_shown_;
};

class Bench {
  public:
    Bench(model::Executor& executor, const model::StepBytes& bytes, std::int64_t n_vocab, int repetitions)
        : executor_(executor), bytes_(bytes), n_vocab_(n_vocab), repetitions_(repetitions) {}

    /// Measures a row from a sequence that is `start` tokens in; null: from nothing.
    Status measure(Row& row, const model::CheckpointPtr& start, const RowProgress& progress) {
        for (int i = 0; i < repetitions_; ++i) {
            progress.say(fmt::format("{} {}, batch {}, depth {}: run {} of {}", row.test, row.n, row.batch,
                                     row.depth, i + 1, repetitions_));
            for (int s = 0; s < row.batch; ++s)
                if (Status ok = start ? executor_.restore(SlotId(s), *start) : executor_.bind(SlotId(s)); !ok)
                    return ok;
            const auto begin = Clock::now();
            Status done = row.test == "pp" ? read(row.depth, row.n, model::WantLogits::last)
                                           : generate(row.depth, row.n, row.batch);
            row.seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
            for (int s = 0; s < row.batch; ++s) executor_.release(SlotId(s));
            if (!done) return done;
        }
        row.n_bytes = bytes_of(row);
        return {};
    }

    /// The state after `depth` tokens; null for none.
    Result<model::CheckpointPtr> state_at(int depth) {
        if (depth == 0) return model::CheckpointPtr();
        if (Status ok = executor_.bind(SlotId(0)); !ok) return std::move(ok).error();
        Status done = read(0, depth, model::WantLogits::none);
        auto state = done ? executor_.snapshot(SlotId(0)) : Result<model::CheckpointPtr>(done.error());
        executor_.release(SlotId(0));
        return state;
    }

  private:
    double bytes_of(const Row& row) const {
        if (row.test == "tg") return row.n * bytes_.of(row.batch, row.batch, row.depth + row.n / 2);
        double sum = 0;
        for (int at = 0; at < row.n; at += kPromptChunk)
            sum += bytes_.of(std::min(kPromptChunk, row.n - at), 1, row.depth + at);
        return sum;
    }

    /// Any text does: the time does not depend on it, as long as experts are hit as evenly as by chance.
    TokenId token(std::int64_t i) const { return static_cast<TokenId>(i * 7919 % n_vocab_); }

    Status read(int pos, int n, model::WantLogits logits) {
        for (int at = 0; at < n; at += kPromptChunk) {
            model::StepRun run{SlotId(0), pos + at, {}, logits};
            for (int i = at; i < std::min(n, at + kPromptChunk); ++i) run.tokens.push_back(token(pos + i));
            if (Status ok = step({run}); !ok) return ok;
        }
        return {};
    }

    Status generate(int pos, int n, int batch) {
        for (int i = 0; i < n; ++i) {
            std::vector<model::StepRun> runs;
            for (int s = 0; s < batch; ++s)
                runs.push_back({SlotId(s),
                                pos + i,
                                {token(std::int64_t{pos + i} * batch + s)},
                                model::WantLogits::last});
            if (Status ok = step(runs); !ok) return ok;
        }
        return {};
    }

    Status step(const std::vector<model::StepRun>& runs) {
        if (interrupted()) return Error(Code::cancelled, "interrupted");
        auto logits = executor_.step(runs);
        if (!logits) return std::move(logits).error();
        for (std::int64_t r = 0; r < logits->n_rows; ++r)
            if (!std::isfinite(logits->row(r)[0])) return Error(Code::internal, "a logit is not finite");
        return {};
    }

    model::Executor& executor_;
    const model::StepBytes& bytes_;
    std::int64_t n_vocab_;
    int repetitions_;
};

std::string as_json(const Subject& subject, const std::vector<Row>& rows) {
    Json list = Json::array();
    for (const Row& row : rows)
        list.push_back(Json{{"test", row.test},
                            {"n", row.n},
                            {"batch", row.batch},
                            {"depth", row.depth},
                            {"tps", row.tps(0.5)},
                            {"min", row.tps(1)},
                            {"max", row.tps(0)},
                            {"gbps", row.gbps()}});
    return Json{{"model", subject.model},       {"backend", "cpu"},         {"isa", subject.isa},
                {"threads", subject.n_threads}, {"repack", subject.repack}, {"kv", subject.kv},
                {"rows", std::move(list)}}
               .dump() +
           "\n";
}

std::string as_table(const Subject& subject, const std::vector<Row>& rows) {
    const double host_gbps = subject.host_bytes_per_s / 1e9;
    std::string out = fmt::format("model    {}{}, {}\n", subject.model,
                                  subject.name.empty() ? "" : " (" + subject.name + ")",
                                  format_bytes(subject.weight_bytes));
    out += fmt::format("cpu      {}, {} threads, KV {}, packed weights: {}{}\n", subject.isa,
                       subject.n_threads, subject.kv, subject.repack,
                       subject.repack_bytes > 0 ? ", " + format_bytes(subject.repack_bytes) : "");
    if (host_gbps > 0)
        out += fmt::format("memory   {:.1f} GB/s when {} threads do nothing but read\n", host_gbps,
                           subject.n_threads);
    out += fmt::format("\n{:<8} {:>5} {:>6} {:>10} {:>21} {:>9} {:>10}\n", "test", "batch", "depth",
                       "tokens/s", "slowest … fastest", "GB/s", "of memory");
    for (const Row& row : rows)
        out += fmt::format("{:<8} {:>5} {:>6} {:>10.2f} {:>21} {:>9.2f} {:>10}\n",
                           fmt::format("{} {}", row.test, row.n), row.batch, row.depth, row.tps(0.5),
                           fmt::format("{:.2f} … {:.2f}", row.tps(1), row.tps(0)), row.gbps(),
                           host_gbps > 0 ? fmt::format("{:.0f} %", 100 * row.gbps() / host_gbps) : "?");
    out +=
        "\nGB/s: bytes that the tokens need at least (weights once a step, of the experts those that chance "
        "hits, "
        "states,\nkeys and values), by the median time.\n";
    return out;
}

Result<std::string> measure(const BenchOptions& options) {
    const auto settings = local_settings("cpu", {options.kv, {}, {}}, options.threads);
    if (!settings) return settings.error();
    Subject subject;
    subject.model = options.model.empty() ? config::embedded_model_path() : options.model;
    auto file = open_model(subject.model);
    if (!file) return std::move(file).error();
    auto weights = model::Weights::load(*std::move(file));
    if (!weights) return std::move(weights).error().with_context(subject.model);

    model::ExecutorConfig config;
    config.backend = settings->backend;
    config.n_threads = settings->n_threads;
    config.n_slots = std::ranges::max(options.batch);
    config.n_ctx = std::ranges::max(options.depth) + std::max(options.n_prompt, options.n_decode);
    config.kv = settings->kv;
    const RowProgress progress;
    progress.say("measuring the memory");
    subject.host_bytes_per_s = measure_read_bandwidth(config.n_threads);
    if (options.repack == "auto")
        config.repack =
            model::repack_that_fits(**weights, config.backend, config::host_defaults().free_bytes);
    else if (options.repack != "none")
        config.repack = options.repack == "all" ? model::Repack::all : model::Repack::dense;
    progress.say("loading");
    auto executor = model::Executor::create(*weights, config);
    if (!executor) return std::move(executor).error();

    subject.name = (*weights)->name();
    subject.isa = model::isa_name(config.backend);
    subject.repack = repack_name(config.repack);
    subject.kv = options.kv.value_or("f16");
    subject.n_threads = config.n_threads;
    subject.weight_bytes = (*weights)->weight_bytes();
    subject.repack_bytes = (*executor)->repack_bytes();

    const model::StepBytes bytes(**weights, config.kv);
    Bench bench(**executor, bytes, (*weights)->n_vocab(), options.repetitions);
    std::vector<Row> rows;
    for (const int depth : options.depth) {
        progress.say(fmt::format("reading {} tokens", depth));
        const auto start = bench.state_at(depth);
        if (!start) return start.error();
        std::vector<Row> here;
        if (options.n_prompt > 0) here.push_back({"pp", options.n_prompt, 1, depth});
        if (options.n_decode > 0)
            for (const int batch : options.batch) here.push_back({"tg", options.n_decode, batch, depth});
        for (Row& row : here) {
            if (Status ok = bench.measure(row, *start, progress); !ok) return std::move(ok).error();
            rows.push_back(std::move(row));
        }
    }
    return options.as_json ? as_json(subject, rows) : as_table(subject, rows);
}

}  // namespace

int run_bench(const BenchOptions& options) {
    if (options.n_prompt == 0 && options.n_decode == 0) {
        complain("bench: -p 0 and -n 0 leave nothing to measure");
        return kUsage;
    }
    handle_interrupts(OnInterrupt::raise_flag);
    const auto text = measure(options);
    if (text) return write_out(*text) ? kDone : kRefused;
    if (interrupted()) return kInterrupted;
    complain(text.error().to_string());
    return kRefused;
}

}  // namespace pantheon::cli

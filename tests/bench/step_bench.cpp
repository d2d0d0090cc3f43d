// Milliseconds per token of a model on this host. Tests are read from standard input, one a line, and
// answered one a line in JSON, so that a script can alternate with another program without loading either
// again (compare_llama.py). A test is "pp N": a prompt of N tokens in one step, "tg N [DEPTH]": N tokens one
// by one after a prompt of DEPTH, or "bt B [N]": N steps of one token for each of B sequences. With --profile
// the parts of the steps, and how long threads wait in them, go to standard error.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "model/executor.h"
#include "model/gguf/gguf_file.h"
#include "model/qwen35moe/step_profile.h"
#include "model/qwen35moe/weights.h"

namespace pantheon {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kUsage = 2;
constexpr int kMaxBatch = 16;
constexpr int kContext = 8192;
constexpr int kPromptChunk = 512;

struct Options {
    std::string model;
    model::ExecutorConfig executor;
    bool is_profiled = false;
};

double milliseconds_since(Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// Of all threads; other processes on the same cores do not count, but caches and memory are shared with
/// them.
double cpu_milliseconds() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

struct StepTime {
    double ms = 0, cpu_ms = 0;
};

class Bench {
  public:
    Bench(model::Executor& executor, std::int64_t n_vocab, model::StepProfile* profile, int n_threads)
        : executor_(executor), n_vocab_(n_vocab), profile_(profile), n_threads_(n_threads) {}

    /// Median time per token of a test, as a line of JSON.
    Result<std::string> run(const std::string& line) {
        std::istringstream words(line);
        std::string test;
        int n = 0, extra = 0;
        words >> test >> n;
        if (!(words >> extra)) extra = 0;
        std::vector<StepTime> times;
        if (profile_) profile_->clear();
        const int n_slots = test == "bt" ? n : 1;
        const int n_steps = test == "tg" ? n : test == "bt" ? (extra > 0 ? extra : 12) : 1;
        const int n_prompt = test == "pp" ? n : test == "tg" ? extra : 0;
        if (n < 1 || n_slots > kMaxBatch || n_prompt + n_steps > kContext ||
            (test != "pp" && test != "tg" && test != "bt"))
            return Error(Code::invalid_argument, "no such test: " + line);
        for (int s = 0; s < n_slots; ++s)
            if (Status ok = executor_.bind(SlotId(s)); !ok) return std::move(ok).error();
        Status status =
            test == "pp" ? step({prompt(0, n)}, times, n) : decode(n_prompt, n_slots, n_steps, times);
        for (int s = 0; s < n_slots; ++s) executor_.release(SlotId(s));
        if (!status) return std::move(status).error();
        if (profile_) print_profile();
        const auto median = [&](double StepTime::*field) {
            std::vector<double> values;
            for (const StepTime& time : times) values.push_back(time.*field);
            std::sort(values.begin(), values.end());
            return values[values.size() / 2];
        };
        return fmt::format("{{\"test\": \"{}\", \"ms\": {:.3f}, \"cpu_ms\": {:.3f}}}", line,
                           median(&StepTime::ms), median(&StepTime::cpu_ms));
    }

  private:
    TokenId token(int i) const { return static_cast<TokenId>(i * 7919LL % n_vocab_); }

    model::StepRun prompt(int pos, int n) const {
        model::StepRun run{SlotId(0), pos, {}, model::WantLogits::last};
        for (int i = 0; i < n; ++i) run.tokens.push_back(token(pos + i));
        return run;
    }

    /// To standard error, per step of the test. Waiting is what a part's threads have not worked, be it at a
    /// barrier or while the leader works alone; alone is the latter's share of the wall.
    void print_profile() const {
        fmt::print(stderr, "{:16}{:>6}{:>10}{:>9}{:>10}{:>9}{:>8}\n", "part", "n", "us", "share", "barriers",
                   "waiting", "alone");
        double total = 0;
        for (const auto& part : profile_->parts) total += part.seconds;
        model::StepProfile::Part sum;
        const double n_steps = static_cast<double>(std::max<std::int64_t>(profile_->n_steps, 1));
        const auto print = [&](const char* name, const model::StepProfile::Part& part) {
            const double alone = part.seconds - part.team_seconds;
            const double waiting = 1 - (part.busy_seconds + alone) / (n_threads_ * part.seconds);
            fmt::print(stderr, "{:16}{:6.0f}{:10.1f}{:8.1f}%{:10.1f}{:8.1f}%{:7.1f}%\n", name,
                       static_cast<double>(part.n) / n_steps, 1e6 * part.seconds / n_steps,
                       100 * part.seconds / total, static_cast<double>(part.n_barriers) / n_steps,
                       100 * waiting, 100 * alone / part.seconds);
        };
        for (int i = 0; i < model::kPhases; ++i) {
            const auto& part = profile_->parts[static_cast<std::size_t>(i)];
            if (part.n == 0) continue;
            print(model::phase_name(static_cast<model::Phase>(i)), part);
            sum.n += part.n, sum.seconds += part.seconds, sum.n_barriers += part.n_barriers;
            sum.team_seconds += part.team_seconds, sum.busy_seconds += part.busy_seconds;
        }
        print("all", sum);
    }

    Status decode(int n_prompt, int n_slots, int n_steps, std::vector<StepTime>& times) {
        std::vector<StepTime> ignored;
        for (int pos = 0; pos < n_prompt; pos += kPromptChunk)
            if (Status ok = step({prompt(pos, std::min(kPromptChunk, n_prompt - pos))}, ignored, 1); !ok)
                return ok;
        for (int i = 0; i < n_steps; ++i) {
            std::vector<model::StepRun> runs;
            for (int s = 0; s < n_slots; ++s)
                runs.push_back({SlotId(s),
                                n_prompt + i,
                                {token((n_prompt + i) * n_slots + s)},
                                model::WantLogits::last});
            // The first steps allocate.
            if (profile_ && i == std::min(n_steps - 1, 2)) profile_->clear();
            if (Status ok = step(runs, times, n_slots); !ok) return ok;
        }
        return {};
    }

    Status step(const std::vector<model::StepRun>& runs, std::vector<StepTime>& times, int n_tokens) {
        const auto start = Clock::now();
        const double cpu_start = cpu_milliseconds();
        auto logits = executor_.step(runs);
        if (!logits) return std::move(logits).error();
        times.push_back({milliseconds_since(start) / n_tokens, (cpu_milliseconds() - cpu_start) / n_tokens});
        for (std::int64_t r = 0; r < logits->n_rows; ++r)
            for (const float x : logits->row(r))
                if (!std::isfinite(x)) return Error(Code::internal, "a logit is not finite");
        return {};
    }

    model::Executor& executor_;
    std::int64_t n_vocab_;
    model::StepProfile* profile_;
    int n_threads_;
};

Status run(Options options) {
    const auto start = Clock::now();
    auto file = model::GgufFile::open(options.model);
    if (!file) return std::move(file).error();
    auto weights = model::Weights::load(*file);
    if (!weights) return std::move(weights).error();
    options.executor.n_slots = kMaxBatch;
    options.executor.n_ctx = kContext;
    model::StepProfile profile;
    if (options.is_profiled) options.executor.profile = &profile;
    auto executor = model::Executor::create(*weights, options.executor);
    if (!executor) return std::move(executor).error();
    fmt::print("{{\"isa\": \"{}\", \"threads\": {}, \"repacked\": {}, \"load_ms\": {:.0f}}}\n",
               model::isa_name(options.executor.backend), options.executor.n_threads,
               (*executor)->repack_bytes(), milliseconds_since(start));
    std::fflush(stdout);
    Bench bench(**executor, (*weights)->n_vocab(), options.executor.profile, options.executor.n_threads);
    for (std::string line; std::getline(std::cin, line) && !line.empty();) {
        auto answer = bench.run(line);
        if (!answer) return std::move(answer).error();
        fmt::print("{}\n", *answer);
        std::fflush(stdout);
    }
    return {};
}

bool parse(int argc, char** argv, Options& options) {
    options.executor.backend = model::Backend::cpu;
    options.executor.repack = model::Repack::all;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        if (!word.starts_with("--")) {
            options.model = word;
        } else if (word == "--ref") {
            options.executor.backend = model::Backend::ref;
        } else if (word == "--rows") {
            options.executor.repack = model::Repack::none;
        } else if (word == "--dense") {
            options.executor.repack = model::Repack::dense;
        } else if (word == "--profile") {
            options.is_profiled = true;
        } else if (word == "--threads" && i + 1 < argc) {
            options.executor.n_threads = std::max(1, std::atoi(argv[++i]));
        } else {
            return false;
        }
    }
    return !options.model.empty();
}

}  // namespace
}  // namespace pantheon

int main(int argc, char** argv) {
    pantheon::Options options;
    if (!pantheon::parse(argc, argv, options)) {
        fmt::print(
            stderr,
            "usage: step_bench MODEL.gguf [--threads N] [--ref] [--rows | --dense] [--profile] < TESTS\n");
        return pantheon::kUsage;
    }
    if (const pantheon::Status status = pantheon::run(std::move(options)); !status) {
        fmt::print(stderr, "step_bench: {}\n", status.error().to_string());
        return 1;
    }
    return 0;
}

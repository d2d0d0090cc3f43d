// Milliseconds per token of a model on this host: prefill of a prompt, then decode one token at a time. The
// model is run over the prompt once before anything is timed, so that its pages are mapped.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "model/executor.h"
#include "model/gguf/gguf_file.h"
#include "model/qwen35moe/weights.h"

namespace pantheon {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kUsage = 2;

struct Options {
    std::string model;
    model::Backend backend = model::Backend::cpu;
    int n_threads = 1;
    int n_prompt = 256;
    int n_decode = 32;
};

double milliseconds_since(Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// The time of one step.
Result<double> timed_step(model::Executor& executor, model::StepRun run) {
    const auto start = Clock::now();
    auto logits = executor.step({&run, 1});
    if (!logits) return std::move(logits).error();
    const double ms = milliseconds_since(start);
    for (std::int64_t r = 0; r < logits->n_rows; ++r)
        for (const float x : logits->row(r))
            if (!std::isfinite(x)) return Error(Code::internal, "a logit is not finite");
    return ms;
}

void report(const char* name, std::vector<double> times) {
    std::sort(times.begin(), times.end());
    fmt::print("{:8} ms/token: min {:.3f}, median {:.3f}, max {:.3f} of {}\n", name, times.front(),
               times[times.size() / 2], times.back(), times.size());
}

Status run(const Options& options) {
    auto file = model::GgufFile::open(options.model);
    if (!file) return std::move(file).error();
    auto weights = model::Weights::load(*file);
    if (!weights) return std::move(weights).error();
    model::ExecutorConfig config;
    config.backend = options.backend;
    config.n_threads = options.n_threads;
    config.n_ctx = options.n_prompt + options.n_decode;
    auto executor = model::Executor::create(*weights, config);
    if (!executor) return std::move(executor).error();

    const SlotId slot(0);
    const auto token = [&](int i) { return static_cast<TokenId>(i * 7919LL % (*weights)->n_vocab()); };
    std::vector<double> prefill, decode;
    for (int round = 0; round < 3; ++round) {
        if (Status ok = (*executor)->bind(slot); !ok) return ok;
        model::StepRun prompt{slot, 0, {}, model::WantLogits::last};
        for (int i = 0; i < options.n_prompt; ++i) prompt.tokens.push_back(token(i));
        auto ms = timed_step(**executor, prompt);
        if (!ms) return std::move(ms).error();
        if (round > 0) prefill.push_back(*ms / options.n_prompt);
        for (int i = 0; i < options.n_decode; ++i) {
            const int at = options.n_prompt + i;
            ms = timed_step(**executor, {slot, at, {token(at)}, model::WantLogits::last});
            if (!ms) return std::move(ms).error();
            if (round > 0) decode.push_back(*ms);
        }
        (*executor)->release(slot);
    }
    fmt::print("{} isa {} threads {}\n", options.model, model::isa_name(options.backend), options.n_threads);
    report("prefill", prefill);
    report("decode", decode);
    return {};
}

}  // namespace
}  // namespace pantheon

int main(int argc, char** argv) {
    if (argc < 2 || std::strcmp(argv[1], "--help") == 0) {
        fmt::print("usage: step_bench MODEL.gguf [cpu|ref [THREADS [PROMPT [DECODE]]]]\n");
        return argc < 2 ? pantheon::kUsage : 0;
    }
    pantheon::Options options;
    options.model = argv[1];
    if (argc > 2 && std::strcmp(argv[2], "ref") == 0) options.backend = pantheon::model::Backend::ref;
    if (argc > 3) options.n_threads = std::max(1, std::atoi(argv[3]));
    if (argc > 4) options.n_prompt = std::max(1, std::atoi(argv[4]));
    if (argc > 5) options.n_decode = std::max(1, std::atoi(argv[5]));
    if (const pantheon::Status status = pantheon::run(options); !status) {
        fmt::print(stderr, "step_bench: {}\n", status.error().to_string());
        return 1;
    }
    return 0;
}

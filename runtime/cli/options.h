// What the command line asks for, as plain values: the parser fills these, the commands read them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace pantheon::cli {

struct GenerateOptions {
    std::string prompt;  // "-": standard input
    std::optional<std::int64_t> max_tokens;
    std::optional<double> temperature;
    std::optional<std::uint64_t> seed;
    bool is_raw = false;
    bool no_thinking = false;
    bool as_json = false;
};
struct ChatOptions {
    std::string system;
    std::optional<std::int64_t> max_tokens;
    std::optional<double> temperature;
    std::optional<std::int64_t> thinking_budget;
    bool no_thinking = false;
};
struct StatusOptions {
    bool as_json = false;
};
struct TopOptions {
    std::optional<double> interval_s;
    std::optional<std::int64_t> frames;
};
struct PingOptions {};
struct CancelOptions {
    std::string id;
};
struct DrainOptions {
    std::optional<double> timeout_s;
};
struct ReloadOptions {
    bool is_dry_run = false;
};
struct MetricsOptions {};
struct SessionsOptions {
    bool as_json = false;
    bool is_shared = false;
    std::string drop;  // a session's name; empty: list them
};

// `model` empty: ask the daemon.
struct TokenizeOptions {
    std::string model;
    bool special = false;
    std::string text;  // "-": standard input
};
struct DetokenizeOptions {
    std::string model;
    std::vector<std::string> ids;  // a single "-": standard input
};
struct TemplateOptions {
    std::string model;
    std::string messages;  // a file; "-": standard input
    std::string tools;     // a file; empty: none
    bool no_thinking = false;
    bool no_generation_prompt = false;
};
struct InfoOptions {
    std::string file;
    bool as_json = false;
};
struct ScoreOptions {
    std::string model;
    std::string tokens;  // a file; "-": standard input
    std::string logits;
    std::string backend = "ref";
    std::optional<int> threads;
    std::optional<int> chunk;
    std::optional<std::string> kv;
    std::optional<int> sink, window;
};

struct PerplexityOptions {
    std::string model;
    std::string text;  // a file; "-": standard input
    std::string backend = "cpu";
    std::optional<int> threads;
    std::optional<int> n_ctx;
    std::optional<std::string> kv;
    std::optional<int> sink, window;
};

struct BenchOptions {
    std::string model;                  // empty: the embedded one
    int n_prompt = 512, n_decode = 64;  // 0: not measured
    std::vector<int> batch{1, 2, 4, 8, 16};
    std::vector<int> depth{0, 4096};
    int repetitions = 3;
    std::optional<int> threads;
    std::optional<std::string> kv;
    std::string repack = "auto";
    bool as_json = false;
};

using Command = std::variant<GenerateOptions, ChatOptions, StatusOptions, TopOptions, PingOptions,
                             CancelOptions, DrainOptions, ReloadOptions, MetricsOptions, SessionsOptions,
                             TokenizeOptions, DetokenizeOptions, TemplateOptions, InfoOptions, ScoreOptions,
                             PerplexityOptions, BenchOptions>;

struct CommandLine {
    std::string endpoint;  // empty: the default places
    Command command;
};

}  // namespace pantheon::cli

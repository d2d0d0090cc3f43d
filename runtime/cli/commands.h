// The commands, one function each. They return the exit code, print results to standard output and everything
// else to standard error, and never throw for what a file or a daemon can cause.
#pragma once

#include <string>

#include "runtime/cli/options.h"

namespace pantheon::cli {

int run_command(const CommandLine& line);

// Of a daemon at `endpoint`; empty: the default places.
int run_generate(const GenerateOptions& options, const std::string& endpoint);
int run_chat(const ChatOptions& options, const std::string& endpoint);
int run_status(const StatusOptions& options, const std::string& endpoint);
int run_top(const TopOptions& options, const std::string& endpoint);
int run_ping(const std::string& endpoint);
int run_cancel(const CancelOptions& options, const std::string& endpoint);
int run_drain(const DrainOptions& options, const std::string& endpoint);
int run_reload(const ReloadOptions& options, const std::string& endpoint);
int run_metrics(const std::string& endpoint);
int run_sessions(const SessionsOptions& options, const std::string& endpoint);

// Of a daemon, or of the file that --model names.
int run_tokenize(const TokenizeOptions& options, const std::string& endpoint);
int run_detokenize(const DetokenizeOptions& options, const std::string& endpoint);
int run_template(const TemplateOptions& options, const std::string& endpoint);

// Of a file.
int run_info(const InfoOptions& options);
int run_score(const ScoreOptions& options);
int run_perplexity(const PerplexityOptions& options);
int run_bench(const BenchOptions& options);

}  // namespace pantheon::cli

#include "runtime/cli/commands.h"

namespace pantheon::cli {
namespace {

struct Runner {
    const std::string& endpoint;

    int operator()(const GenerateOptions& o) const { return run_generate(o, endpoint); }
    int operator()(const ChatOptions& o) const { return run_chat(o, endpoint); }
    int operator()(const StatusOptions& o) const { return run_status(o, endpoint); }
    int operator()(const TopOptions& o) const { return run_top(o, endpoint); }
    int operator()(const PingOptions&) const { return run_ping(endpoint); }
    int operator()(const CancelOptions& o) const { return run_cancel(o, endpoint); }
    int operator()(const DrainOptions& o) const { return run_drain(o, endpoint); }
    int operator()(const ReloadOptions& o) const { return run_reload(o, endpoint); }
    int operator()(const MetricsOptions&) const { return run_metrics(endpoint); }
    int operator()(const SessionsOptions& options) const { return run_sessions(options, endpoint); }
    int operator()(const TokenizeOptions& o) const { return run_tokenize(o, endpoint); }
    int operator()(const DetokenizeOptions& o) const { return run_detokenize(o, endpoint); }
    int operator()(const TemplateOptions& o) const { return run_template(o, endpoint); }
    int operator()(const InfoOptions& o) const { return run_info(o); }
    int operator()(const ScoreOptions& o) const { return run_score(o); }
    int operator()(const PerplexityOptions& o) const { return run_perplexity(o); }
    int operator()(const BenchOptions& o) const { return run_bench(o); }
};

}  // namespace

int run_command(const CommandLine& line) {
    return std::visit(Runner{line.endpoint}, line.command);
}

}  // namespace pantheon::cli

#include "runtime/cli/daemon_call.h"

#include "runtime/cli/console.h"

namespace pantheon::cli {

int report_failure(const Error& error) {
    complain(error.to_string());
    return ipc::is_unreachable(error) ? kUnreachable : kUsage;
}

int report_refusal(const ErrorEvent& refusal) {
    std::string text = refusal.error.to_string();
    if (refusal.retry_after_ms) text += " (retry in " + std::to_string(*refusal.retry_after_ms) + " ms)";
    complain(text);
    return kRefused;
}

std::variant<ipc::Client, int> reach_daemon(const std::string& endpoint) {
    ipc::ClientOptions options;
    options.endpoint = endpoint;
    auto client = ipc::Client::connect(options);
    if (!client) return report_failure(client.error());
    return std::move(client).value();
}

std::variant<Json, int> ask_daemon(const std::string& endpoint, const Request& request,
                                   std::chrono::milliseconds timeout) {
    auto reached = reach_daemon(endpoint);
    if (const int* code = std::get_if<int>(&reached)) return *code;
    auto event = std::get<ipc::Client>(reached).call(request, timeout);
    if (!event) return report_failure(event.error());
    if (const auto* refusal = std::get_if<ErrorEvent>(&*event)) return report_refusal(*refusal);
    if (auto* result = std::get_if<ResultEvent>(&*event)) return std::move(result->value);
    complain("data_loss: the daemon's answer is no result");
    return static_cast<int>(kUnreachable);
}

}  // namespace pantheon::cli

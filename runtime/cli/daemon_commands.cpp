// The commands that ask a daemon one thing and print its answer.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "runtime/cli/commands.h"
#include "runtime/cli/console.h"
#include "runtime/cli/daemon_call.h"
#include "runtime/cli/numbers.h"
#include "runtime/cli/status_text.h"
#include "runtime/cli/utf8_repair.h"

namespace pantheon::cli {
namespace {

int print(const std::string& text) {
    if (write_out(text)) return kDone;
    complain("standard output cannot be written");
    return kRefused;
}

int print_json(const Json& value) {
    return print(value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

int ask_and_print(const std::string& endpoint, const Request& request,
                  std::chrono::milliseconds timeout = std::chrono::seconds(60)) {
    const auto answer = ask_daemon(endpoint, request, timeout);
    if (const int* code = std::get_if<int>(&answer)) return *code;
    return print_json(std::get<Json>(answer));
}

}  // namespace

int run_status(const StatusOptions& options, const std::string& endpoint) {
    const auto answer = ask_daemon(endpoint, StatusRequest{}, std::chrono::seconds(10));
    if (const int* code = std::get_if<int>(&answer)) return *code;
    const auto& status = std::get<Json>(answer);
    return options.as_json ? print_json(status) : print(status_text(status));
}

int run_ping(const std::string& endpoint) {
    auto reached = reach_daemon(endpoint);
    if (const int* code = std::get_if<int>(&reached)) return *code;
    auto& client = std::get<ipc::Client>(reached);
    const auto begin = std::chrono::steady_clock::now();
    const auto event = client.call(PingRequest{}, std::chrono::seconds(10));
    if (!event) return report_failure(event.error());
    if (const auto* refusal = std::get_if<ErrorEvent>(&*event)) return report_refusal(*refusal);
    const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - begin;
    char time[32];
    std::snprintf(time, sizeof time, "%.2f ms", elapsed.count());
    return print("answer from " + client.endpoint() + " in " + time + "\n");
}

int run_cancel(const CancelOptions& options, const std::string& endpoint) {
    CancelRequest request;
    if (const auto number = parse_number<std::uint64_t>(options.id))
        request.target = *number;
    else
        request.target = repair_utf8(options.id);
    const auto answer = ask_daemon(endpoint, request);
    if (const int* code = std::get_if<int>(&answer)) return *code;
    const auto& result = std::get<Json>(answer);
    const auto found = result.find("cancelled");
    if (found != result.end() && found->is_boolean() && found->get<bool>()) return print("cancelled\n");
    complain("no request of yours is called " + options.id);
    return kRefused;
}

int run_drain(const DrainOptions& options, const std::string& endpoint) {
    // The daemon may take its time: what it was given, and a minute for the answer.
    constexpr double kMostSeconds = 86400;
    const double given_s = std::clamp(options.timeout_s.value_or(kMostSeconds), 0.0, kMostSeconds);
    const auto patience = std::chrono::seconds(static_cast<std::int64_t>(given_s) + 60);
    return ask_and_print(endpoint, DrainRequest{options.timeout_s}, patience);
}

int run_reload(const ReloadOptions& options, const std::string& endpoint) {
    return ask_and_print(endpoint, ReloadRequest{options.is_dry_run}, std::chrono::minutes(10));
}

int run_metrics(const std::string& endpoint) {
    const auto answer = ask_daemon(endpoint, MetricsRequest{});
    if (const int* code = std::get_if<int>(&answer)) return *code;
    const auto& result = std::get<Json>(answer);
    const auto text = result.find("text");
    if (text == result.end() || !text->is_string()) {
        complain("the daemon sent no text");
        return kRefused;
    }
    return print(text->get_ref<const std::string&>());
}

int run_sessions(const SessionsOptions& options, const std::string& endpoint) {
    SessionRequest request;
    request.op = options.drop.empty() ? "sessions" : "session.drop";
    if (!options.drop.empty()) request.session = repair_utf8(options.drop);
    if (options.is_shared) request.cache = CacheMode::shared;
    const auto answer = ask_daemon(endpoint, request);
    if (const int* code = std::get_if<int>(&answer)) return *code;
    const auto& result = std::get<Json>(answer);
    if (options.as_json) return print_json(result);
    return print(options.drop.empty() ? sessions_text(result) : "dropped\n");
}

}  // namespace pantheon::cli

// `generate`: one prompt, its answer streamed.
#include <nlohmann/json.hpp>

#include "ipc/event_json.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/console.h"
#include "runtime/cli/daemon_call.h"
#include "runtime/cli/stream_printer.h"
#include "runtime/cli/utf8_repair.h"

namespace pantheon::cli {
namespace {

GenerateRequest make_request(const GenerateOptions& options, const std::string& prompt) {
    GenerateRequest request;
    if (options.is_raw) {
        request.input = prompt;
    } else {
        request.input = Json::array({Json{{"role", "user"}, {"content", prompt}}});
        if (options.no_thinking) request.thinking = false;
    }
    request.max_tokens = options.max_tokens;
    request.sampling.temperature = options.temperature;
    request.sampling.seed = options.seed;
    return request;
}

int report_done(const DoneEvent& done, bool as_json, bool is_written) {
    if (as_json)
        is_written =
            write_out(ipc::event_to_json(done).dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
    if (interrupted()) return kInterrupted;
    if (done.error) {
        complain(done.error->to_string());
        return kRefused;
    }
    if (done.finish != "stop" && done.finish != "length") {
        complain("the answer ended early: " + done.finish);
        return kRefused;
    }
    if (!is_written) {
        complain("standard output cannot be written");
        return kRefused;
    }
    return kDone;
}

}  // namespace

int run_generate(const GenerateOptions& options, const std::string& endpoint) {
    std::string prompt = options.prompt;
    if (prompt == "-") {
        auto text = read_stdin();
        if (!text) {
            complain(text.error().message());
            return kUsage;
        }
        prompt = *std::move(text);
    }
    auto reached = reach_daemon(endpoint);
    if (const int* code = std::get_if<int>(&reached)) return *code;

    handle_interrupts(OnInterrupt::raise_flag);
    StreamPrinter printer;
    auto last = std::get<ipc::Client>(reached).generate(
        make_request(options, repair_utf8(prompt)),
        [&](const Event& event) {
            if (options.as_json) return;
            if (const auto* token = std::get_if<TokenEvent>(&event)) printer.print(*token);
            if (const auto* progress = std::get_if<ProgressEvent>(&event)) printer.print(*progress);
        },
        &interrupted());
    const bool is_written = printer.finish();
    if (!last) {
        const int code = report_failure(last.error());
        return interrupted() ? static_cast<int>(kInterrupted) : code;
    }
    if (const auto* refusal = std::get_if<ErrorEvent>(&*last)) {
        const int code = report_refusal(*refusal);
        return interrupted() ? static_cast<int>(kInterrupted) : code;
    }
    if (const auto* done = std::get_if<DoneEvent>(&*last))
        return report_done(*done, options.as_json, is_written);
    complain("data_loss: the daemon's last event ends nothing");
    return kUnreachable;
}

}  // namespace pantheon::cli

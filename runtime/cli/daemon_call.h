// Asking a daemon, with the command's way of reporting what goes wrong.
#pragma once

#include <chrono>
#include <string>
#include <variant>

#include "actors/client_messages.h"
#include "ipc/client.h"

namespace pantheon::cli {

/// Complains about an error of this side and returns the exit code: 3 when the daemon could not be reached, 2
/// when the endpoint or the request makes no sense.
int report_failure(const Error& error);
/// Complains about the daemon's refusal; returns 1.
int report_refusal(const ErrorEvent& refusal);

/// A connection, or the exit code of what was reported.
std::variant<ipc::Client, int> reach_daemon(const std::string& endpoint);

/// The result map of a request with one reply, or the exit code of what was reported.
std::variant<Json, int> ask_daemon(const std::string& endpoint, const Request& request,
                                   std::chrono::milliseconds timeout = std::chrono::seconds(60));

}  // namespace pantheon::cli

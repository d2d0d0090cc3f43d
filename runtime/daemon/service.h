// The running daemon: actor system, socket, signals, readiness, the end.
#pragma once

#include "actors/settings.h"
#include "ipc/router_loop.h"

namespace pantheon::daemon {

/// Blocks the signals that serve() waits for. Call before any thread is started: threads inherit the mask.
void block_signals();

/// Runs until a signal or a failure ends it; returns the process's exit status (0 or 1).
int serve(actors::DaemonSettings settings, ipc::RouterConfig router);

}  // namespace pantheon::daemon

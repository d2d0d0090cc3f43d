// The running daemon: actor system, socket, signals, readiness, the end.
#pragma once

#include "actors/settings.h"
#include "ipc/router_loop.h"
#include "runtime/daemon/notifier.h"

namespace pantheon::daemon {

/// Blocks the signals that serve() waits for. Call before any thread is started: threads inherit the mask.
void block_signals();

/// Runs until a signal or a failure ends it; returns the process's exit status: 0, 1, or 78 when the model
/// cannot be served as it is.
int serve(actors::DaemonSettings settings, ipc::RouterConfig router, Notifier& notifier);

}  // namespace pantheon::daemon

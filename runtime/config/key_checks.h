// The checks and "auto" rules of single keys that are more than a range; schema.cpp names them in its rows.
#pragma once

#include <cstddef>

#include "runtime/base/status.h"
#include "runtime/config/config.h"
#include "runtime/config/host_defaults.h"

namespace pantheon::config {

Status auto_model_path(Config& config, std::size_t engine, const HostDefaults& host);
/// A tenth of what is free where sessions.dir is or would be; 0 without one.
Status auto_disk_bytes(Config& config, std::size_t engine, const HostDefaults& host);
Status check_sessions_dir(Config& config, std::size_t engine);
Status check_readings_dir(Config& config, std::size_t engine);
Status auto_endpoint(Config& config, std::size_t engine, const HostDefaults& host);

Status check_model_path(Config& config, std::size_t engine);
/// ipc:// with a path that a socket address can hold.
Status check_endpoint(Config& config, std::size_t engine);
/// Fills ipc.admin_uids.
Status check_admins(Config& config, std::size_t engine);
/// Sliding needs rows behind the sink.
Status check_overflow(Config& config, std::size_t engine);
Status check_engine_name(Config& config, std::size_t engine);
/// "cpu" or "ref", exactly one in this version.
Status check_dies(Config& config, std::size_t engine);

}  // namespace pantheon::config

// The part of the configuration that takes effect in the running process, as the actors' settings.
#pragma once

#include "actors/settings.h"
#include "model/gguf/gguf_file.h"
#include "runtime/base/status.h"
#include "runtime/config/config.h"

namespace pantheon::daemon {

/// The model file's general.sampling.*, and the protocol's defaults for what it does not say.
Result<actors::SamplingDefaults> file_sampling(const model::GgufMetadata& file);

/// The configured values over those of the file.
actors::SamplingDefaults sampling_defaults(const config::SamplingSection& configured,
                                           const actors::SamplingDefaults& of_file);

actors::Limits limits_of(const config::Config& config);
actors::CacheSettings cache_of(const config::Config& config);
actors::LadderSettings ladder_of(const config::Config& config);

}  // namespace pantheon::daemon

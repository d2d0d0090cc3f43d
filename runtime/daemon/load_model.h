// From a configuration to a loaded model and the settings that the actors work with.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "actors/settings.h"
#include "model/qwen35moe/weights.h"
#include "runtime/base/status.h"
#include "runtime/config/config.h"

namespace pantheon::daemon {

struct LoadedModel {
    std::shared_ptr<const model::Weights> weights;
    std::vector<std::string> files;  // that they are mapped from
    actors::DaemonSettings settings;
    actors::SamplingDefaults file_sampling;  // the model file's own
};

/// Opens and checks the model file and fills every setting. Errors name the file and what is wrong with it.
Result<LoadedModel> load_model(const config::Config& config);

/// Whether kv.pool_bytes holds a sequence of kv.n_ctx tokens of the model; ok when the model cannot be read:
/// what is wrong with it load_model() says.
Status check_kv_pool(const config::Config& config);

/// What `pantheond --plan` prints: layers, dies and bytes.
std::string describe_plan(const config::Config& config, const LoadedModel& loaded);

}  // namespace pantheon::daemon

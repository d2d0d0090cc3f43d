// The JSON tree used for chat messages, tools and free-form replies. Ordered: a tool's keys are rendered in the
// order in which the client wrote them.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace pantheon {
using Json = nlohmann::ordered_json;
}

// The `id` of a message that is refused for one of its values.
#pragma once

#include <optional>
#include <string_view>

#include "actors/client_messages.h"

namespace pantheon::ipc {

/// Walks the message and keeps nothing but the value of the top-level key `id`, wherever it stands. Nothing
/// when the message is no map, is damaged, or nests deeper than the protocol allows, or the id is no id.
std::optional<RequestId> find_id(std::string_view frame);

}  // namespace pantheon::ipc

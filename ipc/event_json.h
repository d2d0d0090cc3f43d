// Replies as maps: the one description of which fields each event has on the wire. The encoder packs these
// maps, the command prints them for --json.
#pragma once

#include <string_view>

#include "actors/client_messages.h"
#include "runtime/base/json.h"
#include "runtime/base/status.h"

namespace pantheon::ipc {

/// The fields of an event as they stand in a reply, without `id` and `ev`; absent optional fields are left
/// out. A ResultEvent gives its value. Binary values stay Json::binary.
Json event_to_json(const Event& event);

/// `accepted`, `progress`, `token`, `done`, `result` or `error`.
const char* event_name(const Event& event);

/// The inverse of event_to_json for a reply whose `ev` is `name`; fields it does not know are ignored, so
/// that an older client can read a newer daemon.
Result<Event> event_from_json(std::string_view name, const Json& fields);

}  // namespace pantheon::ipc

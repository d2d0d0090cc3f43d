// The wire protocol as values: bytes to requests and replies, and back. ipc/protocol.md is the contract; this
// is its only implementation, used by the socket loop, by the client library and by their tests.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "actors/client_messages.h"
#include "runtime/base/status.h"

namespace pantheon::ipc {

struct DecodedRequest {
    RequestId id;
    Request request;
};

/// Why a message was refused, and the id to answer under where one could be read.
struct RefusedRequest {
    std::optional<RequestId> id;
    Error error;
};

using DecodeOutcome = std::variant<DecodedRequest, RefusedRequest>;

/// Total: any bytes give a request or a refusal. Every field is checked for type and range; what only the
/// model can know (whether an id is in the vocabulary, whether a prompt fits) is not.
DecodeOutcome decode_request(std::string_view frame) noexcept;

/// The client's direction. Fails only where the message would be larger than a daemon accepts.
Result<std::string> encode_request(const RequestId& id, const Request& request);

struct Reply {
    std::optional<RequestId> id;  // none: the daemon could not read the message that this answers
    Event event;
};

std::string encode_event(const std::optional<RequestId>& id, const Event& event);

/// Total as well. Unknown fields are ignored.
Result<Reply> decode_reply(std::string_view frame) noexcept;

/// The `op` of a request: "generate", "session.drop", …
std::string_view op_name(const Request& request);

}  // namespace pantheon::ipc

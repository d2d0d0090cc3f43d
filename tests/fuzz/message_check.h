// What must hold for any bytes whatever, shared by the fuzzer and by the plain test over its corpus.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "ipc/codec.h"
#include "ipc/limits.h"

namespace pantheon::fuzz {

/// Aborts when a promise of the codec is broken; returns whether the bytes were a request.
inline bool check_message(std::string_view bytes) {
    const ipc::DecodeOutcome outcome = ipc::decode_request(bytes);
    (void)ipc::decode_reply(bytes);
    const auto* refused = std::get_if<ipc::RefusedRequest>(&outcome);
    if (refused != nullptr) {
        if (refused->error.message().empty() || refused->error.message().size() > 4096) std::abort();
        // The refusal must itself be a message that a client can read.
        if (!ipc::decode_reply(ipc::encode_event(refused->id, ErrorEvent{refused->error, {}}))) std::abort();
        return false;
    }
    const auto& decoded = std::get<ipc::DecodedRequest>(outcome);
    const auto again = ipc::encode_request(decoded.id, decoded.request);
    // Wider encodings of the same values shrink, a float 32 grows: only a small message must fit again.
    if (!again) {
        if (bytes.size() < ipc::kMaxRequestBytes / 2) std::abort();
        return true;
    }
    const ipc::DecodeOutcome second = ipc::decode_request(*again);
    const auto* repeated = std::get_if<ipc::DecodedRequest>(&second);
    if (repeated == nullptr || repeated->id != decoded.id) std::abort();
    if (ipc::encode_request(repeated->id, repeated->request).value() != *again) std::abort();
    return true;
}

}  // namespace pantheon::fuzz

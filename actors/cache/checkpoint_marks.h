// Where in a prompt the state is worth keeping. Pure functions, tested by table.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/base/ids.h"

namespace pantheon::actors {

/// What is known of a prompt when its sequence starts.
struct PromptShape {
    std::int64_t n_tokens = 0;
    std::vector<std::int64_t> message_ends;  // ascending; the last one is where the assistant's header begins
    std::int64_t n_cached = 0;               // evaluation starts here
    std::int64_t n_shared = 0;               // so far it agrees with a prompt that the cache has seen
};

/// Positions after n_cached, ascending and each once, up to and with the end of the prompt:
///  - message ends, and with the last of them the place before the assistant's header;
///  - every multiple of `every` (0: none);
///  - where the prompt leaves what has been seen: the next prompt with the same beginning starts there;
///  - the end, and for prompts that are not cheap to read again also one token before it unless a message
///  ends
///    nearby: at least one token is always evaluated, so a repeated prompt cannot use the end itself.
std::vector<std::int64_t> checkpoint_marks(const PromptShape& prompt, std::int64_t every);

/// The first token of a message as the templates write it.
inline constexpr std::string_view kMessageStart = "<|im_start|>";
/// Positions before a `message_start` token other than the first position: messages end there.
std::vector<std::int64_t> message_ends(std::span<const TokenId> prompt, TokenId message_start);

/// A prompt from here on gets the mark before its last token: the step that this takes is then small beside
/// the rest.
inline constexpr std::int64_t kLongPrompt = 256;

}  // namespace pantheon::actors

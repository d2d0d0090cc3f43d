// The sizes of the wire protocol, in one place. ipc/protocol.md states the same numbers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pantheon::ipc {

inline constexpr std::uint64_t kProtocolVersion = 1;

// A request's frame, counted while it is parsed. The total keeps the tree of a full frame below some tens of
// MB: four million one-byte values would otherwise become a hundred times their size.
inline constexpr std::size_t kMaxRequestBytes = 4u << 20;
inline constexpr std::size_t kMaxDepth = 16;
inline constexpr std::size_t kMaxMapEntries = 64;
inline constexpr std::size_t kMaxArrayElements = 300'000;
inline constexpr std::size_t kMaxTotalValues = 400'000;

inline constexpr std::size_t kMaxIdBytes = 128;
inline constexpr std::size_t kMaxSessionBytes = 128;
inline constexpr std::size_t kMaxStopStrings = 16;
inline constexpr std::size_t kMaxLogitBias = 1'024;
inline constexpr int kMaxTopLogprobs = 20;

// A reply comes from the daemon, so its limits only guard against damage; `score` with 20 alternatives is
// large.
inline constexpr std::size_t kMaxReplyBytes = 64u << 20;
inline constexpr std::size_t kMaxReplyValues = 16u << 20;

}  // namespace pantheon::ipc

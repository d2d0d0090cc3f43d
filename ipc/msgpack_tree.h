// Bytes to a tree of values and back. All limits are counted while parsing, before anything of that size is
// built; whatever the bytes are, the answer is a tree or an error that says where.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "ipc/limits.h"
#include "runtime/base/json.h"
#include "runtime/base/status.h"

namespace pantheon::ipc {

struct TreeLimits {
    std::size_t max_bytes;
    std::size_t max_depth;
    std::size_t max_map_entries;
    std::size_t max_array_elements;
    std::size_t max_total_values;  // keys count as values
    bool allow_binary;             // else a bin value is refused, naming the field
    bool allow_non_finite;         // else NaN and infinities are refused, naming the field
};

inline constexpr TreeLimits kRequestLimits = {kMaxRequestBytes, kMaxDepth, kMaxMapEntries, kMaxArrayElements,
                                              kMaxTotalValues,  false,     false};
inline constexpr TreeLimits kReplyLimits = {kMaxReplyBytes,  kMaxDepth, 4'096, kMaxReplyValues,
                                            kMaxReplyValues, true,      true};

/// Parses exactly one msgpack map that fills `bytes`, into `root`. Keys must be distinct strings; every
/// string must be valid UTF-8; ext values are refused. Integers stay integers, floats become double. On
/// failure `root` holds what was complete by then (the caller may still find an `id` in it) and the Error is
/// invalid_argument with a path such as "messages[3].content".
Status parse_map(std::string_view bytes, const TreeLimits& limits, Json& root);

/// The tree as msgpack, each value in its shortest form; floating-point numbers as float 64.
std::string pack_tree(const Json& value);

/// Text from a client, made short enough for an error message.
std::string quote_text(std::string_view text);

}  // namespace pantheon::ipc

// Reads the fields of a request map strictly: each known field with its type and range, and none besides. The
// first problem is kept; every message names its field.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/client_messages.h"
#include "runtime/base/json.h"
#include "runtime/base/status.h"

namespace pantheon::ipc {

class Fields {
  public:
    /// `map` must outlive this and be a JSON object. The fields in `seen` count as read.
    Fields(const Json& map, std::initializer_list<std::string_view> seen);

    bool has(std::string_view key) const;
    /// Refuses an absent field.
    void require(std::string_view key);

    // Absent or wrong: nothing. A range is inclusive.
    std::optional<std::string> text(std::string_view key, std::size_t max_bytes = SIZE_MAX);
    std::optional<bool> boolean(std::string_view key);
    std::optional<std::int64_t> integer(std::string_view key, std::int64_t low, std::int64_t high);
    std::optional<std::uint64_t> unsigned_integer(std::string_view key);
    std::optional<double> number(std::string_view key, double low, double high);
    std::optional<std::vector<TokenId>> tokens(std::string_view key);
    std::optional<RequestId> request_id(std::string_view key);
    /// An array of maps, as messages and tools are; null when absent.
    Json maps(std::string_view key);
    /// The raw value, counted as read; null when absent.
    const Json* take(std::string_view key);

    void fail(std::string_view key, std::string_view what);
    void fail(Error error);

    /// The first problem, or an unknown field.
    Status finish() const;

  private:
    const Json& map_;
    std::vector<std::string_view> known_;
    std::optional<Error> error_;
};

inline constexpr std::int64_t kMaxInt32 = 2'147'483'647;

/// A string of at most kMaxIdBytes or an unsigned integer.
std::optional<RequestId> request_id_from_json(const Json& value);
Json request_id_to_json(const RequestId& id);

/// A token id: an unsigned integer below 2^31. Whether the vocabulary has it is not known here.
std::optional<TokenId> token_from_json(const Json& value);

}  // namespace pantheon::ipc

#include "ipc/find_id.h"

#include <msgpack.hpp>

#include "ipc/limits.h"
#include "runtime/base/utf8.h"

namespace pantheon::ipc {
namespace {

/// msgpack-c's visitor concept. Stops at what is too deep; every other value is passed over.
struct IdVisitor : msgpack::null_visitor {
    std::optional<RequestId> id;

    bool visit_positive_integer(std::uint64_t value) {
        if (is_id_value()) id = value;
        return true;
    }
    bool visit_str(const char* text, std::uint32_t size) {
        const std::string_view s(text, size);
        if (depth_ == 1 && is_key_)
            is_after_id_ = s == "id";
        else if (is_id_value() && size <= kMaxIdBytes && is_strict_utf8(s))
            id = std::string(s);
        return true;
    }
    bool start_map(std::uint32_t) { return descend(); }
    bool end_map() { return ascend(); }
    bool start_array(std::uint32_t) { return descend(); }
    bool end_array() { return ascend(); }
    bool start_map_key() {
        if (depth_ == 1) {
            is_key_ = true;
            is_after_id_ = false;
        }
        return true;
    }
    bool end_map_key() {
        if (depth_ == 1) is_key_ = false;
        return true;
    }

  private:
    bool is_id_value() const { return depth_ == 1 && !is_key_ && is_after_id_ && !id; }
    bool descend() { return ++depth_ <= kMaxDepth; }
    bool ascend() {
        --depth_;
        return true;
    }

    std::size_t depth_ = 0;
    bool is_key_ = false;       // of the top-level map
    bool is_after_id_ = false;  // the top-level key last seen was "id"
};

}  // namespace

std::optional<RequestId> find_id(std::string_view frame) {
    // A top-level array would make its elements look like a map's values.
    const auto first = frame.empty() ? 0 : static_cast<unsigned char>(frame.front());
    const bool is_map = (first & 0xF0) == 0x80 || first == 0xDE || first == 0xDF;
    if (!is_map) return std::nullopt;
    IdVisitor visitor;
    std::size_t offset = 0;
    if (!msgpack::parse(frame.data(), frame.size(), offset, visitor)) return std::nullopt;
    return visitor.id;
}

}  // namespace pantheon::ipc

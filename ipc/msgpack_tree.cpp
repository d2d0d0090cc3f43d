#include "ipc/msgpack_tree.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <msgpack.hpp>
#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/base/utf8.h"

namespace pantheon::ipc {
namespace {

constexpr std::size_t kMaxQuotedBytes = 64;

/// msgpack-c's visitor concept: builds the tree value by value and stops at the first thing that is not
/// allowed.
class TreeBuilder {
  public:
    TreeBuilder(const TreeLimits& limits, Json& root) : limits_(limits), root_(root) {}

    const std::string& failure() const { return failure_; }
    bool is_truncated() const { return is_truncated_; }

    bool visit_nil() { return put(Json(nullptr)); }
    bool visit_boolean(bool v) { return put(Json(v)); }
    bool visit_positive_integer(std::uint64_t v) { return put(Json(v)); }
    bool visit_negative_integer(std::int64_t v) {
        // The signed encodings may hold a non-negative number; both spellings are the same integer.
        return v >= 0 ? put(Json(static_cast<std::uint64_t>(v))) : put(Json(v));
    }
    bool visit_float32(float v) { return visit_float64(static_cast<double>(v)); }
    bool visit_float64(double v) {
        if (!limits_.allow_non_finite && !std::isfinite(v)) return fail("not a finite number");
        return put(Json(v));
    }
    bool visit_str(const char* data, std::uint32_t size) {
        const std::string_view text(size == 0 ? "" : data, size);
        if (is_key_) return take_key(text);
        if (!is_strict_utf8(text)) return fail("not valid UTF-8");
        return put(Json(text));
    }
    bool visit_bin(const char* data, std::uint32_t size) {
        if (!limits_.allow_binary) return fail("binary data where text or a number is expected");
        std::vector<std::uint8_t> bytes(size);
        if (size != 0) std::copy_n(data, size, bytes.begin());
        return put(Json::binary(std::move(bytes)));
    }
    bool visit_ext(const char*, std::uint32_t) {
        return fail("msgpack extension types are not part of the protocol");
    }

    bool start_array(std::uint32_t n) {
        if (levels_.empty()) return fail("the message is not a map");
        if (n > limits_.max_array_elements)
            return fail("an array of " + std::to_string(n) + " elements, limit " +
                        std::to_string(limits_.max_array_elements));
        return open(Json::array(), n);
    }
    bool start_array_item() { return true; }
    bool end_array_item() { return true; }
    bool end_array() { return close(); }

    bool start_map(std::uint32_t n) {
        if (n > limits_.max_map_entries)
            return fail("a map of " + std::to_string(n) + " entries, limit " +
                        std::to_string(limits_.max_map_entries));
        if (!open(Json::object(), n)) return false;
        // Growing a map copies its values, since a pair with a const key cannot be moved without a throw.
        levels_.back().node->get_ref<Json::object_t&>().reserve(std::min<std::size_t>(n, kMaxMapEntries));
        return true;
    }
    bool start_map_key() {
        is_key_ = true;
        return true;
    }
    bool end_map_key() {
        is_key_ = false;
        return true;
    }
    bool start_map_value() { return true; }
    bool end_map_value() { return true; }
    bool end_map() { return close(); }

    void parse_error(std::size_t, std::size_t at) {
        if (failure_.empty()) fail("not msgpack at byte " + std::to_string(at));
    }
    void insufficient_bytes(std::size_t, std::size_t) { is_truncated_ = true; }

  private:
    struct Level {
        Json* node;
        std::string key;  // of the value being read, when node is a map
    };

    bool fail(std::string what) {
        const std::string where = path();
        failure_ = where.empty() ? std::move(what) : where + ": " + what;
        return false;
    }

    /// Where the value being read stands: "messages[3].content".
    std::string path() const {
        std::string out;
        for (const Level& level : levels_) {
            if (level.node->is_array()) {
                // An outer level holds the value already in which the inner ones stand.
                const std::size_t index = level.node->size() - (&level == &levels_.back() ? 0 : 1);
                out.append("[").append(std::to_string(index)).append("]");
            } else if (!is_key_ || &level != &levels_.back()) {
                if (!out.empty()) out.push_back('.');
                out.append(clip_utf8(level.key, kMaxQuotedBytes));
            }
        }
        return out;
    }

    bool take_key(std::string_view text) {
        if (!count(1)) return false;
        if (!is_strict_utf8(text)) return fail("a key is not valid UTF-8");
        Level& level = levels_.back();
        if (level.node->contains(text)) {
            level.key = text;
            is_key_ = false;
            return fail("given twice");
        }
        level.key = text;
        return true;
    }

    bool count(std::size_t n) {
        n_values_ += n;
        if (n_values_ <= limits_.max_total_values) return true;
        return fail("more than " + std::to_string(limits_.max_total_values) + " values in one message");
    }

    /// Puts a value into the innermost container and returns where it stands now; null on failure.
    Json* place(Json value) {
        if (is_key_) {
            fail("a key is not a string");
            return nullptr;
        }
        if (!count(1)) return nullptr;
        if (levels_.empty()) {
            if (!value.is_object()) {
                fail("the message is not a map");
                return nullptr;
            }
            root_ = std::move(value);
            return &root_;
        }
        Level& level = levels_.back();
        if (level.node->is_array()) {
            auto& array = level.node->get_ref<Json::array_t&>();
            array.push_back(std::move(value));
            return &array.back();
        }
        auto& map = level.node->get_ref<Json::object_t&>();
        // emplace would look the key up again, which take_key has done.
        map.Container::emplace_back(level.key, std::move(value));
        return &map.back().second;
    }

    bool put(Json value) { return place(std::move(value)) != nullptr; }

    bool open(Json container, std::uint32_t n) {
        if (is_key_) return fail("a key is not a string");
        if (levels_.size() >= limits_.max_depth)
            return fail("nested deeper than " + std::to_string(limits_.max_depth));
        // Refused by its header already: the elements need not be looked at to know that they are too many.
        if (n > limits_.max_total_values - std::min(n_values_, limits_.max_total_values))
            return fail("more than " + std::to_string(limits_.max_total_values) + " values in one message");
        Json* node = place(std::move(container));
        if (node == nullptr) return false;
        levels_.push_back({node, {}});
        return true;
    }

    bool close() {
        levels_.pop_back();
        return true;
    }

    const TreeLimits& limits_;
    Json& root_;
    std::vector<Level> levels_;
    std::size_t n_values_ = 0;
    bool is_key_ = false;
    bool is_truncated_ = false;
    std::string failure_;
};

struct StringSink {
    std::string& out;
    void write(const char* data, std::size_t size) { out.append(data, size); }
};

using Packer = msgpack::packer<StringSink>;

void pack_str(Packer& packer, std::string_view text) {
    packer.pack_str(static_cast<std::uint32_t>(text.size()));
    packer.pack_str_body(text.data(), static_cast<std::uint32_t>(text.size()));
}

/// msgpack-c writes 1.0 as the integer 1; a field that is a floating-point number stays one.
void pack_float64(StringSink& sink, double value) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    char bytes[9] = {'\xcb'};
    for (int i = 0; i < 8; ++i) bytes[1 + i] = static_cast<char>(bits >> (56 - 8 * i));
    sink.write(bytes, sizeof bytes);
}

void pack(StringSink& sink, Packer& packer, const Json& value) {
    switch (value.type()) {
        case Json::value_t::boolean:
            value.get<bool>() ? packer.pack_true() : packer.pack_false();
            return;
        case Json::value_t::number_integer:
            packer.pack_int64(value.get<std::int64_t>());
            return;
        case Json::value_t::number_unsigned:
            packer.pack_uint64(value.get<std::uint64_t>());
            return;
        case Json::value_t::number_float:
            pack_float64(sink, value.get<double>());
            return;
        case Json::value_t::string:
            pack_str(packer, value.get_ref<const std::string&>());
            return;
        case Json::value_t::binary: {
            const auto& bytes = value.get_binary();
            packer.pack_bin(static_cast<std::uint32_t>(bytes.size()));
            packer.pack_bin_body(reinterpret_cast<const char*>(bytes.data()),
                                 static_cast<std::uint32_t>(bytes.size()));
            return;
        }
        case Json::value_t::array:
            packer.pack_array(static_cast<std::uint32_t>(value.size()));
            for (const Json& element : value) pack(sink, packer, element);
            return;
        case Json::value_t::object:
            packer.pack_map(static_cast<std::uint32_t>(value.size()));
            for (const auto& [key, element] : value.get_ref<const Json::object_t&>()) {
                pack_str(packer, key);
                pack(sink, packer, element);
            }
            return;
        case Json::value_t::null:
        case Json::value_t::discarded:
            packer.pack_nil();
            return;
    }
}

}  // namespace

Status parse_map(std::string_view bytes, const TreeLimits& limits, Json& root) {
    root = Json(nullptr);
    const auto refuse = [](std::string message) { return Error(Code::invalid_argument, std::move(message)); };
    if (bytes.empty()) return refuse("an empty message");
    if (bytes.size() > limits.max_bytes)
        return refuse("a message of " + std::to_string(bytes.size()) + " bytes, limit " +
                      std::to_string(limits.max_bytes));
    TreeBuilder builder(limits, root);
    std::size_t offset = 0;
    bool is_complete = false;
    try {
        is_complete = msgpack::parse(bytes.data(), bytes.size(), offset, builder);
    } catch (const msgpack::unpack_error&) {
        return refuse("not msgpack");  // an ext of 4 GiB, the one thing the parser itself throws for
    }
    if (!builder.failure().empty()) return refuse(builder.failure());
    if (builder.is_truncated() || !is_complete) return refuse("the message is cut off");
    if (offset != bytes.size()) return refuse("bytes after the end of the message");
    return {};
}

std::string pack_tree(const Json& value) {
    std::string out;
    StringSink sink{out};
    Packer packer(sink);
    pack(sink, packer, value);
    return out;
}

std::string quote_text(std::string_view text) {
    const std::string_view head = clip_utf8(text, kMaxQuotedBytes);
    std::string out;
    out.append("'").append(head).append(head.size() < text.size() ? "…'" : "'");
    return out;
}

}  // namespace pantheon::ipc

#include "ipc/fields.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "ipc/limits.h"
#include "ipc/msgpack_tree.h"

namespace pantheon::ipc {
namespace {

std::string_view type_name(const Json& value) {
    if (value.is_null()) return "nil";
    if (value.is_boolean()) return "a boolean";
    if (value.is_number_float()) return "a floating-point number";
    if (value.is_number()) return "an integer";
    if (value.is_string()) return "a string";
    if (value.is_array()) return "an array";
    if (value.is_object()) return "a map";
    return "binary";
}

std::string mistyped(std::string_view wanted, const Json& value) {
    return std::string(wanted) + " is expected, this is " + std::string(type_name(value));
}

std::string short_number(double v) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", v);
    return text;
}

}  // namespace

Fields::Fields(const Json& map, std::initializer_list<std::string_view> seen) : map_(map), known_(seen) {}

bool Fields::has(std::string_view key) const {
    return map_.contains(key);
}

void Fields::require(std::string_view key) {
    if (!has(key)) fail(key, "missing");
}

void Fields::fail(std::string_view key, std::string_view what) {
    fail(Error(Code::invalid_argument, std::string(key) + ": " + std::string(what)));
}

void Fields::fail(Error error) {
    if (!error_) error_ = std::move(error);
}

const Json* Fields::take(std::string_view key) {
    known_.push_back(key);
    const auto at = map_.find(key);
    return at == map_.end() ? nullptr : &*at;
}

std::optional<std::string> Fields::text(std::string_view key, std::size_t max_bytes) {
    const Json* value = take(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_string()) {
        fail(key, mistyped("a string", *value));
        return std::nullopt;
    }
    const auto& string = value->get_ref<const std::string&>();
    if (string.size() > max_bytes) {
        fail(key, std::to_string(string.size()) + " bytes, limit " + std::to_string(max_bytes));
        return std::nullopt;
    }
    return string;
}

std::optional<bool> Fields::boolean(std::string_view key) {
    const Json* value = take(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_boolean()) {
        fail(key, mistyped("a boolean", *value));
        return std::nullopt;
    }
    return value->get<bool>();
}

std::optional<std::int64_t> Fields::integer(std::string_view key, std::int64_t low, std::int64_t high) {
    const Json* value = take(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number_integer()) {
        fail(key, mistyped("an integer", *value));
        return std::nullopt;
    }
    const bool is_huge = value->is_number_unsigned() && value->get<std::uint64_t>() > INT64_MAX;
    if (is_huge || value->get<std::int64_t>() < low || value->get<std::int64_t>() > high) {
        fail(key, value->dump() + " is outside " + std::to_string(low) + " … " + std::to_string(high));
        return std::nullopt;
    }
    return value->get<std::int64_t>();
}

std::optional<std::uint64_t> Fields::unsigned_integer(std::string_view key) {
    const Json* value = take(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number_unsigned()) {
        fail(key, mistyped("an unsigned integer", *value));
        return std::nullopt;
    }
    return value->get<std::uint64_t>();
}

std::optional<double> Fields::number(std::string_view key, double low, double high) {
    const Json* value = take(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number()) {
        fail(key, mistyped("a number", *value));
        return std::nullopt;
    }
    const double v = value->get<double>();
    if (!(v >= low && v <= high)) {
        fail(key, short_number(v) + " is outside " + short_number(low) + " … " + short_number(high));
        return std::nullopt;
    }
    return v;
}

std::optional<std::vector<TokenId>> Fields::tokens(std::string_view key) {
    const Json* value = take(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_array()) {
        fail(key, mistyped("an array of token ids", *value));
        return std::nullopt;
    }
    std::vector<TokenId> ids;
    ids.reserve(value->size());
    for (const Json& element : *value) {
        const std::optional<TokenId> id = token_from_json(element);
        if (!id) {
            const std::string where = std::string(key) + "[" + std::to_string(ids.size()) + "]";
            fail(where, element.is_number_integer()
                            ? element.dump() + " is outside 0 … " + std::to_string(kMaxInt32)
                            : mistyped("a token id", element));
            return std::nullopt;
        }
        ids.push_back(*id);
    }
    return ids;
}

std::optional<RequestId> Fields::request_id(std::string_view key) {
    const Json* value = take(key);
    if (value == nullptr) return std::nullopt;
    std::optional<RequestId> id = request_id_from_json(*value);
    if (!id)
        fail(key, "a string of at most " + std::to_string(kMaxIdBytes) +
                      " bytes or an unsigned integer is expected");
    return id;
}

Json Fields::maps(std::string_view key) {
    const Json* value = take(key);
    if (value == nullptr) return nullptr;
    if (!value->is_array()) {
        fail(key, mistyped("an array of maps", *value));
        return nullptr;
    }
    for (std::size_t i = 0; i < value->size(); ++i) {
        if ((*value)[i].is_object()) continue;
        fail(std::string(key) + "[" + std::to_string(i) + "]", mistyped("a map", (*value)[i]));
        return nullptr;
    }
    return *value;
}

Status Fields::finish() const {
    if (error_) return *error_;
    for (const auto& [key, value] : map_.get_ref<const Json::object_t&>()) {
        const bool is_known = std::find(known_.begin(), known_.end(), key) != known_.end();
        if (!is_known) return Error(Code::invalid_argument, "unknown field " + quote_text(key));
    }
    return {};
}

std::optional<RequestId> request_id_from_json(const Json& value) {
    if (value.is_number_unsigned()) return RequestId(value.get<std::uint64_t>());
    if (!value.is_string()) return std::nullopt;
    const auto& text = value.get_ref<const std::string&>();
    if (text.size() > kMaxIdBytes) return std::nullopt;
    return RequestId(text);
}

Json request_id_to_json(const RequestId& id) {
    return std::visit([](const auto& v) { return Json(v); }, id);
}

std::optional<TokenId> token_from_json(const Json& value) {
    if (!value.is_number_unsigned()) return std::nullopt;
    const auto id = value.get<std::uint64_t>();
    if (id > static_cast<std::uint64_t>(kMaxInt32)) return std::nullopt;
    return static_cast<TokenId>(id);
}

}  // namespace pantheon::ipc

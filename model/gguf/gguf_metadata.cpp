#include <cassert>
#include <limits>
#include <type_traits>

#include "kernels/quant/weight_type.h"
#include "model/gguf/gguf_file.h"
#include "model/gguf/gguf_types.h"

namespace pantheon::model {
namespace {

std::string type_of(const GgufValue& value) {
    if (const auto* array = std::get_if<GgufArray>(&value))
        return "an array of " + std::string(gguf_type_name(array->element_type));
    struct Name {
        const char* operator()(std::int64_t) const { return "an integer"; }
        const char* operator()(std::uint64_t) const { return "an integer"; }
        const char* operator()(double) const { return "a float"; }
        const char* operator()(bool) const { return "a bool"; }
        const char* operator()(const std::string&) const { return "a string"; }
    };
    return std::visit(Name{}, std::get<GgufScalar>(value));
}

Error wrong_type(std::string_view key, const GgufValue& value, const char* want) {
    return Error(Code::invalid_argument, std::string(key) + ": " + type_of(value) + ", want " + want);
}

Error too_large(std::string_view key, std::uint64_t value) {
    return Error(Code::invalid_argument, std::string(key) + ": " + std::to_string(value) +
                                             " is out of the range of 64-bit signed integers");
}

template <class T>
const T* scalar(const GgufValue& value) {
    const auto* s = std::get_if<GgufScalar>(&value);
    return s ? std::get_if<T>(s) : nullptr;
}

}  // namespace

std::size_t GgufArray::size() const {
    return std::visit([](const auto& v) { return v.size(); }, values);
}

const GgufValue* GgufMetadata::find(std::string_view key) const {
    const auto it = index_.find(std::string(key));
    return it == index_.end() ? nullptr : &entries_[it->second].value;
}

void GgufMetadata::add(Entry entry) {
    const bool is_new = index_.emplace(entry.key, entries_.size()).second;
    assert(is_new);
    (void)is_new;
    entries_.push_back(std::move(entry));
}

Result<std::optional<std::int64_t>> GgufMetadata::get_int(std::string_view key, std::int64_t min,
                                                          std::int64_t max) const {
    const GgufValue* value = find(key);
    if (!value) return std::optional<std::int64_t>();
    if (const auto* u = scalar<std::uint64_t>(*value)) return too_large(key, *u);
    const auto* i = scalar<std::int64_t>(*value);
    if (!i) return wrong_type(key, *value, "an integer");
    if (*i < min || *i > max) {
        return Error(Code::invalid_argument, std::string(key) + ": " + std::to_string(*i) + ", want " +
                                                 std::to_string(min) + " to " + std::to_string(max));
    }
    return std::optional(*i);
}

Result<std::optional<double>> GgufMetadata::get_float(std::string_view key) const {
    const GgufValue* value = find(key);
    if (!value) return std::optional<double>();
    if (const auto* d = scalar<double>(*value)) return std::optional(*d);
    return wrong_type(key, *value, "a float");
}

Result<std::optional<bool>> GgufMetadata::get_bool(std::string_view key) const {
    const GgufValue* value = find(key);
    if (!value) return std::optional<bool>();
    if (const auto* b = scalar<bool>(*value)) return std::optional(*b);
    // Some exporters write flags as integers.
    if (const auto* i = scalar<std::int64_t>(*value); i && (*i == 0 || *i == 1))
        return std::optional(*i == 1);
    return wrong_type(key, *value, "a bool");
}

Result<std::optional<std::string_view>> GgufMetadata::get_string(std::string_view key) const {
    const GgufValue* value = find(key);
    if (!value) return std::optional<std::string_view>();
    if (const auto* s = scalar<std::string>(*value)) return std::optional<std::string_view>(*s);
    return wrong_type(key, *value, "a string");
}

Result<std::optional<std::vector<std::int64_t>>> GgufMetadata::get_int_array(std::string_view key) const {
    using Values = std::vector<std::int64_t>;
    const GgufValue* value = find(key);
    if (!value) return std::optional<Values>();
    if (const auto* i = scalar<std::int64_t>(*value)) return std::optional(Values{*i});
    if (const auto* b = scalar<bool>(*value)) return std::optional(Values{*b ? 1 : 0});
    if (const auto* u = scalar<std::uint64_t>(*value)) return too_large(key, *u);
    const auto* array = std::get_if<GgufArray>(value);
    if (!array) return wrong_type(key, *value, "an array of integers");
    if (const auto* ints = std::get_if<Values>(&array->values)) return std::optional(*ints);
    const auto* unsigneds = std::get_if<std::vector<std::uint64_t>>(&array->values);
    if (!unsigneds) return wrong_type(key, *value, "an array of integers");
    Values ints;
    ints.reserve(unsigneds->size());
    for (const std::uint64_t u : *unsigneds) {
        if (u > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
            return too_large(key, u);
        ints.push_back(static_cast<std::int64_t>(u));
    }
    return std::optional(std::move(ints));
}

Result<std::optional<std::vector<double>>> GgufMetadata::get_float_array(std::string_view key) const {
    using Values = std::vector<double>;
    const GgufValue* value = find(key);
    if (!value) return std::optional<Values>();
    if (const auto* d = scalar<double>(*value)) return std::optional(Values{*d});
    if (const auto* array = std::get_if<GgufArray>(value))
        if (const auto* floats = std::get_if<Values>(&array->values)) return std::optional(*floats);
    return wrong_type(key, *value, "an array of floats");
}

Result<const std::vector<std::string>*> GgufMetadata::get_string_array(std::string_view key) const {
    const std::vector<std::string>* none = nullptr;
    const GgufValue* value = find(key);
    if (!value) return none;
    if (const auto* array = std::get_if<GgufArray>(value))
        if (const auto* strings = std::get_if<std::vector<std::string>>(&array->values)) return strings;
    return wrong_type(key, *value, "an array of strings");
}

std::string_view gguf_type_name(std::int32_t type) {
    constexpr std::string_view kNames[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                           "bool", "string", "array", "u64", "i64", "f64"};
    if (type < 0 || type >= static_cast<std::int32_t>(std::size(kNames))) return "?";
    return kNames[type];
}

std::string_view gguf_tensor_type_name(std::int32_t type) {
    const kernels::WeightTypeInfo* info = kernels::weight_type_info(type);
    return info == nullptr ? "?" : info->name;
}

std::uint64_t gguf_type_min_bytes(std::int32_t type) {
    constexpr std::uint64_t kBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 0, 8, 8, 8};
    if (type < 0 || type >= static_cast<std::int32_t>(std::size(kBytes))) return 0;
    return kBytes[type];
}

}  // namespace pantheon::model

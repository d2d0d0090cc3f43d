#include "model/qwen35moe/key_reader.h"

#include <algorithm>

namespace pantheon::model {

void KeyReader::fail(Error error) {
    if (!error_) error_ = std::move(error);
}

void KeyReader::fail(Code code, std::string_view key, const std::string& what) {
    fail(Error(code, full(key) + ": " + what));
}

std::int64_t KeyReader::required_int(std::string_view key, std::int64_t min, std::int64_t max) {
    auto value = metadata_.get_int(full(key), min, max);
    if (!value) return fail(std::move(value).error()), min;
    if (!*value) return refuse(key, "missing"), min;
    return **value;
}

std::int64_t KeyReader::int_or(std::string_view key, std::int64_t fallback, std::int64_t min,
                               std::int64_t max) {
    auto value = metadata_.get_int(full(key), min, max);
    if (!value) return fail(std::move(value).error()), fallback;
    return value->value_or(fallback);
}

double KeyReader::required_float(std::string_view key) {
    auto value = metadata_.get_float(full(key));
    if (!value) return fail(std::move(value).error()), 0.0;
    if (!*value) return refuse(key, "missing"), 0.0;
    return **value;
}

double KeyReader::float_or(std::string_view key, double fallback) {
    auto value = metadata_.get_float(full(key));
    if (!value) return fail(std::move(value).error()), fallback;
    return value->value_or(fallback);
}

std::string KeyReader::string_or(std::string_view key, std::string_view fallback) {
    auto value = metadata_.get_string(full(key));
    if (!value) return fail(std::move(value).error()), std::string(fallback);
    return std::string(value->value_or(fallback));
}

std::optional<bool> KeyReader::optional_bool(std::string_view key) {
    auto value = metadata_.get_bool(full(key));
    if (!value) return fail(std::move(value).error()), std::nullopt;
    return *value;
}

std::optional<std::vector<std::int64_t>> KeyReader::optional_ints(std::string_view key) {
    auto value = metadata_.get_int_array(full(key));
    if (!value) return fail(std::move(value).error()), std::nullopt;
    return std::move(*value);
}

std::int64_t KeyReader::int_or_largest(std::string_view key, std::int64_t fallback, std::int64_t min,
                                       std::int64_t max) {
    const auto values = optional_ints(key);
    if (!values) return fallback;
    if (values->empty()) return refuse(key, "empty array"), fallback;
    const std::int64_t largest = *std::max_element(values->begin(), values->end());
    for (const std::int64_t value : *values)
        if (value != 0 && value != largest)
            return fail(Code::unimplemented, key, "values differ between layers"), fallback;
    if (largest < min || largest > max)
        return refuse(key, std::to_string(largest) + " is outside " + std::to_string(min) + " … " +
                               std::to_string(max)),
               fallback;
    return largest;
}

}  // namespace pantheon::model

#include "runtime/base/status.h"

#include <array>

namespace pantheon {
namespace {

struct Row {
    Code code;
    std::string_view name;
};

constexpr std::array<Row, 11> kCodes = {{
    {Code::invalid_argument, "invalid_argument"},
    {Code::not_found, "not_found"},
    {Code::permission_denied, "permission_denied"},
    {Code::failed_precondition, "failed_precondition"},
    {Code::resource_exhausted, "resource_exhausted"},
    {Code::unavailable, "unavailable"},
    {Code::deadline_exceeded, "deadline_exceeded"},
    {Code::cancelled, "cancelled"},
    {Code::data_loss, "data_loss"},
    {Code::unimplemented, "unimplemented"},
    {Code::internal, "internal"},
}};

}  // namespace

std::string_view code_name(Code code) {
    for (const Row& row : kCodes)
        if (row.code == code) return row.name;
    return "internal";
}

std::optional<Code> code_from_name(std::string_view name) {
    for (const Row& row : kCodes)
        if (row.name == name) return row.code;
    return std::nullopt;
}

std::string Error::to_string() const { return std::string(code_name(code_)) + ": " + message_; }

}  // namespace pantheon

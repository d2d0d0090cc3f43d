#include "runtime/cli/utf8_repair.h"

#include <cstdint>
#include <optional>

namespace pantheon::cli {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// Length by the lead byte alone; 0 for a byte that cannot lead.
std::size_t sequence_length(unsigned char lead) {
    if (lead < 0x80) return 1;
    if (lead >= 0xC0 && lead < 0xE0) return 2;
    if (lead >= 0xE0 && lead < 0xF0) return 3;
    if (lead >= 0xF0 && lead < 0xF8) return 4;
    return 0;
}

std::optional<std::uint32_t> code_point(std::string_view bytes, std::size_t length) {
    if (length == 0 || bytes.size() < length) return std::nullopt;
    const auto lead = static_cast<unsigned char>(bytes[0]);
    if (length == 1) return lead;
    std::uint32_t value = lead & (0xFFu >> (length + 1));
    for (std::size_t i = 1; i < length; ++i) {
        const auto byte = static_cast<unsigned char>(bytes[i]);
        if ((byte & 0xC0) != 0x80) return std::nullopt;
        value = value << 6 | (byte & 0x3Fu);
    }
    const bool is_surrogate = value >= 0xD800 && value < 0xE000;
    if (is_surrogate || value > 0x10FFFF) return std::nullopt;
    return value;
}

void append_utf8(std::string& out, std::uint32_t c) {
    const auto put = [&out](std::uint32_t byte) { out += static_cast<char>(byte); };
    if (c < 0x80) {
        put(c);
    } else if (c < 0x800) {
        put(0xC0 | c >> 6);
        put(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
        put(0xE0 | c >> 12);
        put(0x80 | (c >> 6 & 0x3F));
        put(0x80 | (c & 0x3F));
    } else {
        put(0xF0 | c >> 18);
        put(0x80 | (c >> 12 & 0x3F));
        put(0x80 | (c >> 6 & 0x3F));
        put(0x80 | (c & 0x3F));
    }
}

}  // namespace

std::string repair_utf8(std::string_view bytes) {
    std::string out;
    out.reserve(bytes.size());
    while (!bytes.empty()) {
        const std::size_t length = sequence_length(static_cast<unsigned char>(bytes[0]));
        if (const auto value = code_point(bytes, length)) {
            append_utf8(out, *value);
            bytes.remove_prefix(length);
        } else {
            out += kReplacement;
            bytes.remove_prefix(1);
        }
    }
    return out;
}

}  // namespace pantheon::cli

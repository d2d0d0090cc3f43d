#include "runtime/memory/memory_files.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace pantheon::memory {
namespace {

constexpr std::uint64_t kUnlimited = std::uint64_t{1} << 60;

bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

std::string_view next_line(std::string_view& text) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    return line;
}

std::string_view next_word(std::string_view& text) {
    while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
    const auto end = std::find_if(text.begin(), text.end(), is_space);
    const std::string_view word = text.substr(0, static_cast<std::size_t>(end - text.begin()));
    text.remove_prefix(word.size());
    return word;
}

template <class T>
std::optional<T> number(std::string_view word) {
    T value{};
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (word.empty() || error != std::errc{} || end != word.data() + word.size()) return std::nullopt;
    return value;
}

/// "some avg10=0.12 avg60=…": the value of avg10.
std::optional<double> average_10(std::string_view line) {
    constexpr std::string_view kName = "avg10=";
    for (std::string_view word = next_word(line); !word.empty(); word = next_word(line)) {
        if (!word.starts_with(kName)) continue;
        const auto value = number<double>(word.substr(kName.size()));
        if (value && std::isfinite(*value) && *value >= 0 && *value <= 100) return value;
        return std::nullopt;
    }
    return std::nullopt;
}

int base64_digit(char c) {
    constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const std::size_t digit = kDigits.find(c);
    return digit == std::string_view::npos ? -1 : static_cast<int>(digit);
}

}  // namespace

std::optional<std::uint64_t> stat_value(std::string_view text, std::string_view name) {
    while (!text.empty()) {
        std::string_view line = next_line(text);
        if (next_word(line) == name) return number<std::uint64_t>(next_word(line));
    }
    return std::nullopt;
}

std::optional<HostMemory> parse_meminfo(std::string_view text) {
    const auto total = stat_value(text, "MemTotal:");
    const auto available = stat_value(text, "MemAvailable:");
    constexpr std::uint64_t kMost = UINT64_MAX / 1024;
    if (!total || !available || *total > kMost || *available > *total) return std::nullopt;
    return HostMemory{*total * 1024, *available * 1024};
}

std::optional<std::uint64_t> parse_limit(std::string_view text) {
    const auto value = number<std::uint64_t>(next_word(text));
    if (!value || *value >= kUnlimited) return std::nullopt;
    return value;
}

std::optional<Pressure> parse_pressure(std::string_view text) {
    std::optional<Pressure> pressure;
    while (!text.empty()) {
        std::string_view line = next_line(text);
        const std::string_view who = next_word(line);
        const auto value = average_10(line);
        if (!value || (who != "some" && who != "full")) continue;
        if (!pressure) pressure.emplace();
        (who == "some" ? pressure->some_avg10 : pressure->full_avg10) = *value;
    }
    return pressure;
}

std::optional<GroupMemory> group_memory(const GroupFiles& files, bool is_v2) {
    const auto max = parse_limit(files.max);
    const auto high = is_v2 ? parse_limit(files.high) : std::nullopt;
    const auto used = parse_limit(files.current);
    if ((!max && !high) || !used) return std::nullopt;
    GroupMemory group;
    group.limit_bytes = std::min(max.value_or(UINT64_MAX), high.value_or(UINT64_MAX));
    // Version 1 counts the groups below only in the "total" lines.
    const std::string prefix = is_v2 ? "" : "total_";
    std::uint64_t cache = 0;
    for (const char* name : {"inactive_file", "active_file"}) {
        const auto bytes = stat_value(files.stat, prefix + name);
        cache += std::min(bytes.value_or(0), *used - cache);
    }
    group.used_bytes = *used - cache;
    return group;
}

std::optional<std::string> decode_base64(std::string_view text) {
    while (!text.empty() && text.back() == '=') text.remove_suffix(1);
    std::string bytes;
    std::uint32_t bits = 0;
    int n_bits = 0;
    for (const char c : text) {
        const int digit = base64_digit(c);
        if (digit < 0) return std::nullopt;
        bits = (bits << 6) | static_cast<std::uint32_t>(digit);
        n_bits += 6;
        if (n_bits < 8) continue;
        n_bits -= 8;
        bytes.push_back(static_cast<char>((bits >> n_bits) & 0xFF));
    }
    return bytes;
}

}  // namespace pantheon::memory

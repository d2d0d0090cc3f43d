#include "model/gguf/split_name.h"

#include <cstdio>
#include <string_view>

namespace pantheon::model {
namespace {

constexpr std::size_t kDigits = 5;
constexpr std::string_view kPattern = "-00000-of-00000.gguf";

}  // namespace

std::string SplitName::path_of(int other_number) const {
    char ending[40];
    std::snprintf(ending, sizeof ending, "-%05d-of-%05d.gguf", other_number, count);
    return prefix + ending;
}

std::optional<SplitName> parse_split_name(const std::string& path) {
    if (path.size() <= kPattern.size()) return std::nullopt;
    const std::string_view ending = std::string_view(path).substr(path.size() - kPattern.size());
    int numbers[2] = {0, 0};
    std::size_t n_digits = 0;
    for (std::size_t i = 0; i < kPattern.size(); ++i) {
        const char c = ending[i];
        if (kPattern[i] != '0') {
            if (c != kPattern[i]) return std::nullopt;
            continue;
        }
        if (c < '0' || c > '9') return std::nullopt;
        int& number = numbers[n_digits++ / kDigits];
        number = number * 10 + (c - '0');
    }
    return SplitName{path.substr(0, path.size() - kPattern.size()), numbers[0], numbers[1]};
}

}  // namespace pantheon::model

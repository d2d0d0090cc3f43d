#include "runtime/base/units.h"

#include <cstdio>

namespace pantheon {

std::string format_bytes(std::uint64_t n_bytes) {
    static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
    if (n_bytes < kKiB) return std::to_string(n_bytes) + " B";
    double value = static_cast<double>(n_bytes) / 1024.0;
    int unit = 0;
    while (value >= 1024.0 && unit < 3) {
        value /= 1024.0;
        ++unit;
    }
    char text[32];
    std::snprintf(text, sizeof text, "%.1f %s", value, kUnits[unit]);
    return text;
}

}  // namespace pantheon

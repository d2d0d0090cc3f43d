// Build-time program: writes pantheond.toml(5) to standard output.
#include <cstdio>

#include "runtime/config/manual.h"

int main() {
    const std::string page = pantheon::config::manual_page();
    const bool is_written =
        std::fwrite(page.data(), 1, page.size(), stdout) == page.size() && std::fflush(stdout) == 0;
    return is_written ? 0 : 1;
}

// `top`: the daemon's state, again and again.
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "runtime/cli/commands.h"
#include "runtime/cli/console.h"
#include "runtime/cli/daemon_call.h"
#include "runtime/cli/top_text.h"

namespace pantheon::cli {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

struct Screen {
    int width = 1 << 20, height = 1 << 20;  // no terminal: nothing is cut
};

Screen screen_size() {
    winsize size{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
    return {size.ws_col, size.ws_row - 1};  // the cursor's line stays free
}

/// Sleeps until then, in pieces short enough for Ctrl-C; false when that came.
bool wait_until(Clock::time_point then) {
    while (!interrupted() && Clock::now() < then)
        std::this_thread::sleep_for(std::min<Clock::duration>(50ms, then - Clock::now()));
    return !interrupted();
}

}  // namespace

int run_top(const TopOptions& options, const std::string& endpoint) {
    handle_interrupts(OnInterrupt::only_raise_flag);
    const auto interval = std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(options.interval_s.value_or(1)));
    const bool is_terminal = is_out_terminal();
    std::optional<TopSample> before;
    auto next = Clock::now();
    for (std::int64_t i = 0; !options.frames || i < *options.frames; ++i) {
        next += interval;
        auto answer = ask_daemon(endpoint, StatusRequest{}, 10s);
        if (const int* code = std::get_if<int>(&answer)) return *code;
        TopSample now{Clock::now(), std::get<Json>(std::move(answer))};
        const Screen screen = is_terminal ? screen_size() : Screen{};
        std::string frame = top_text(now, before, screen.width, screen.height);
        if (is_terminal)
            frame = "\x1b[H\x1b[2J" + frame;  // home, clear
        else if (i > 0)
            frame = '\n' + frame;
        if (!write_out(frame)) return kRefused;
        before = std::move(now);
        const bool is_last = options.frames && i + 1 == *options.frames;
        if (!is_last && !wait_until(next)) break;  // Ctrl-C is how one leaves: nothing went wrong
    }
    return kDone;
}

}  // namespace pantheon::cli

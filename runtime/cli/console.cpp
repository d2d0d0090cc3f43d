#include "runtime/cli/console.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

namespace pantheon::cli {
namespace {

std::atomic<bool> g_interrupted{false};
std::atomic<bool> g_exit_at_once{true};
std::atomic<bool> g_second_exits{true};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may only touch lock-free atomics");

extern "C" void on_interrupt(int) {
    const bool is_second = g_interrupted.exchange(true);
    if (g_exit_at_once.load() || (is_second && g_second_exits.load())) _exit(kInterrupted);
}

}  // namespace

bool write_out(std::string_view text) {
    return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
}

void write_err(std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
}

void complain(std::string_view message) {
    write_err("pantheon: " + std::string(message) + "\n");
}

bool is_out_terminal() {
    return isatty(STDOUT_FILENO) == 1;
}
bool is_err_terminal() {
    return isatty(STDERR_FILENO) == 1;
}

Result<std::string> read_stdin() {
    std::string text;
    char buffer[65536];
    for (;;) {
        const ssize_t n = read(STDIN_FILENO, buffer, sizeof buffer);
        if (n == 0) return text;
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return Error(Code::unavailable, std::string("standard input: ") + std::strerror(errno));
        text.append(buffer, static_cast<std::size_t>(n));
    }
}

Result<std::string> read_input(const std::string& path) {
    if (path == "-") return read_stdin();
    std::ifstream in(path, std::ios::binary);
    std::ostringstream text;
    // Reading nothing at all sets the failbit of `text`, not of `in`; a directory fails here.
    if (!in || (in.peek() != std::ifstream::traits_type::eof() && !(text << in.rdbuf())) || in.bad())
        return Error(Code::not_found, path + ": " + std::strerror(errno));
    return text.str();
}

void handle_interrupts(OnInterrupt what) {
    g_exit_at_once = what == OnInterrupt::exit_at_once;
    g_second_exits = what != OnInterrupt::only_raise_flag;
    struct sigaction action {};
    action.sa_handler = on_interrupt;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, nullptr);
}

const std::atomic<bool>& interrupted() {
    return g_interrupted;
}

void clear_interrupt() {
    g_interrupted = false;
}

}  // namespace pantheon::cli

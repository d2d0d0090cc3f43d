#include "runtime/daemon/notifier.h"

#include <sys/resource.h>
#include <systemd/sd-daemon.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>

namespace pantheon::daemon {
namespace {

using namespace std::chrono_literals;

constexpr auto kExtendEvery = 5s;
constexpr auto kExtension = 30s;    // from now on, each time
constexpr auto kStopReserve = 20s;  // after the drain: cancelled requests, actors, the file's pages

std::string microseconds(std::chrono::microseconds time) {
    return std::to_string(time.count());
}

void tell(const std::string& state) {
    ::sd_notify(0, state.c_str());
}

/// Grows while the process computes or reads; idle waiting does not count.
std::int64_t work_done() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    const auto ms = [](const timeval& t) {
        return static_cast<std::int64_t>(t.tv_sec) * 1000 + t.tv_usec / 1000;
    };
    return (ms(usage.ru_utime) + ms(usage.ru_stime)) / 10 + usage.ru_majflt;
}

/// A status is one line.
std::string one_line(std::string text) {
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
}

std::int64_t monotonic_us() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::int64_t>(now.tv_sec) * 1000000 + now.tv_nsec / 1000;
}

}  // namespace

Notifier::Notifier() : is_wanted_(std::getenv("NOTIFY_SOCKET") != nullptr) {
    std::uint64_t us = 0;
    if (::sd_watchdog_enabled(0, &us) > 0)
        alive_interval_ = std::max(1ms, std::chrono::milliseconds(us / 2000));
}

Notifier::~Notifier() {
    end_loading();
}

void Notifier::loading(const std::string& what) {
    if (!is_wanted_) return;
    extend_start();
    status("Loading " + what);
    is_loading_ = true;
    extender_ = std::thread([this] {
        std::int64_t done = work_done();
        std::unique_lock lock(mutex_);
        while (!over_.wait_for(lock, kExtendEvery, [this] { return !is_loading_; })) {
            const std::int64_t now = work_done();
            if (now > done) extend_start();
            done = now;
        }
    });
}

void Notifier::extend_start() {
    tell("EXTEND_TIMEOUT_USEC=" + microseconds(kExtension));
}

void Notifier::end_loading() {
    {
        std::lock_guard lock(mutex_);
        is_loading_ = false;
    }
    over_.notify_all();
    if (extender_.joinable()) extender_.join();
}

void Notifier::ready(const std::string& text) {
    end_loading();
    tell("READY=1\nSTATUS=" + one_line(text));
}

void Notifier::status(const std::string& text) {
    {
        std::lock_guard lock(mutex_);
        if (text == last_status_) return;
        last_status_ = text;
    }
    tell("STATUS=" + one_line(text));
}

void Notifier::reloading() {
    tell("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(monotonic_us()) + "\nSTATUS=Reloading");
}

void Notifier::reloaded() {
    tell("READY=1\nSTATUS=Serving");
    std::lock_guard lock(mutex_);
    last_status_.clear();
}

void Notifier::stopping(std::chrono::milliseconds drain) {
    tell("STOPPING=1\nSTATUS=Finishing running requests\nEXTEND_TIMEOUT_USEC=" +
         microseconds(drain + kStopReserve));
}

void Notifier::failed(int exit_code, const std::string& why) {
    end_loading();
    tell("STATUS=" + one_line(why) + "\nEXIT_STATUS=" + std::to_string(exit_code));
}

void Notifier::alive() {
    tell("WATCHDOG=1");
}

}  // namespace pantheon::daemon

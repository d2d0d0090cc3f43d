#include "runtime/memory/pressure_watch.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/memory/memory_files.h"

namespace pantheon::memory {
namespace {

/// Some task waits 200 ms within 2 s. Windows of whole 2 s are what unprivileged processes may ask for.
const std::string kTrigger = "some 200000 2000000";

int connect_to(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) return -1;
    std::memcpy(address.sun_path, path.data(), path.size());
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
    if (fd >= 0) ::close(fd);
    return -1;
}

}  // namespace

PressureWatch::PressureWatch(const config::Environment& env) {
    const auto watch = env("MEMORY_PRESSURE_WATCH");
    if (!watch) {
        open_pressure_file("/proc/pressure/memory", kTrigger);
        return;
    }
    is_managers_ = true;
    if (*watch == "/dev/null") {
        is_forbidden_ = true;
        return;
    }
    const std::string trigger = decode_base64(env("MEMORY_PRESSURE_WRITE").value_or("")).value_or("");
    struct stat info {};
    if (::stat(watch->c_str(), &info) != 0) {
        log_warning("memory", "MEMORY_PRESSURE_WATCH: " + *watch + ": " + std::strerror(errno));
        return;
    }
    if (S_ISREG(info.st_mode)) {
        open_pressure_file(*watch, trigger);
        return;
    }
    events_ = POLLIN;
    if (S_ISFIFO(info.st_mode)) {
        // Open for writing too, so that it does not end when the last writer goes.
        fd_ = ::open(watch->c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
    } else if (S_ISSOCK(info.st_mode)) {
        fd_ = connect_to(*watch);
    }
    if (fd_ < 0) log_warning("memory", "MEMORY_PRESSURE_WATCH: " + *watch + " cannot be watched");
}

void PressureWatch::open_pressure_file(const std::string& path, const std::string& trigger) {
    events_ = POLLPRI;
    fd_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (fd_ < 0) return;
    // The kernel wants the final zero to be written.
    if (::write(fd_, trigger.c_str(), trigger.size() + 1) < 0) close();
}

bool PressureWatch::take(short ready) {
    bool has_spoken = (ready & events_) != 0;
    if ((ready & (POLLERR | POLLHUP | POLLNVAL)) != 0) {
        close();
    } else if (has_spoken && events_ == POLLIN) {
        char buffer[512];
        ssize_t n = 0;
        while ((n = ::read(fd_, buffer, sizeof buffer)) > 0) {
        }
        if (n == 0) close();
    }
    return has_spoken && is_managers_;
}

void PressureWatch::close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
}

PressureWatch::~PressureWatch() {
    close();
}

PressureWatch::PressureWatch(PressureWatch&& other) noexcept {
    *this = std::move(other);
}

PressureWatch& PressureWatch::operator=(PressureWatch&& other) noexcept {
    if (this == &other) return *this;
    close();
    fd_ = std::exchange(other.fd_, -1);
    events_ = other.events_;
    is_managers_ = other.is_managers_;
    is_forbidden_ = other.is_forbidden_;
    return *this;
}

}  // namespace pantheon::memory

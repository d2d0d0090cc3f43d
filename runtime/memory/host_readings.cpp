#include "runtime/memory/host_readings.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <utility>

#include "runtime/config/cgroups.h"
#include "runtime/memory/memory_files.h"

namespace pantheon::memory {
namespace {

constexpr std::chrono::milliseconds kInterval{1000};
constexpr std::chrono::milliseconds kSoonest{200};  // however often somebody wakes us

std::string read_text(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void add_group(const config::CgroupDir& group, actors::MemoryReadings& readings) {
    const std::string prefix = group.path + "/memory.";
    GroupFiles files;
    files.max = read_text(prefix + (group.is_v2 ? "max" : "limit_in_bytes"));
    if (group.is_v2) files.high = read_text(prefix + "high");
    if (!parse_limit(files.max) && !parse_limit(files.high)) return;  // the others are dear to read
    files.current = read_text(prefix + (group.is_v2 ? "current" : "usage_in_bytes"));
    files.stat = read_text(prefix + "stat");
    const auto memory = group_memory(files, group.is_v2);
    if (!memory) return;
    const std::uint64_t used = std::min(memory->used_bytes, memory->limit_bytes);
    readings.rooms.push_back({group.path, memory->limit_bytes, memory->limit_bytes - used});
}

void add_pressure(const std::string& name, const std::string& file, actors::MemoryReadings& readings) {
    if (const auto pressure = parse_pressure(read_text(file)))
        readings.pressures.push_back({name, pressure->some_avg10, pressure->full_avg10});
}

}  // namespace

actors::MemoryReadings read_memory(const std::string& root, bool reads_pressure) {
    actors::MemoryReadings readings;
    readings.at = std::chrono::steady_clock::now();
    if (const auto host = parse_meminfo(read_text(root + "/proc/meminfo")))
        readings.rooms.push_back({"host", host->total_bytes, host->available_bytes});
    if (reads_pressure) add_pressure("host", root + "/proc/pressure/memory", readings);
    bool is_own = true;
    for (const config::CgroupDir& group : config::own_cgroups("memory", root)) {
        add_group(group, readings);
        if (reads_pressure && group.is_v2 && std::exchange(is_own, false))
            add_pressure(group.path, group.path + "/memory.pressure", readings);
    }
    return readings;
}

HostReadings::HostReadings(std::string root, PressureWatch watch)
    : root_(std::move(root)), watch_(std::move(watch)), wake_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

HostReadings::~HostReadings() {
    {
        std::lock_guard lock(mutex_);
        is_over_ = true;
    }
    wake();
    if (thread_.joinable()) thread_.join();
    ::close(wake_fd_);
}

void HostReadings::set_sink(std::function<void(actors::MemoryReadings)> sink) {
    std::lock_guard lock(mutex_);
    sink_ = std::move(sink);
    if (sink_ && !thread_.joinable()) thread_ = std::thread([this] { run(); });
    wake();
}

void HostReadings::wake() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wake_fd_, &one, sizeof one);
}

/// True when the service manager has spoken.
bool HostReadings::wait_for_next_look() {
    pollfd fds[] = {{wake_fd_, POLLIN, 0}, {watch_.fd(), watch_.events(), 0}};
    ::poll(fds, 2, static_cast<int>(kInterval.count()));
    std::uint64_t n_wakes = 0;
    [[maybe_unused]] const auto read = ::read(wake_fd_, &n_wakes, sizeof n_wakes);
    if (fds[1].revents == 0) return false;
    const bool is_signalled = watch_.take(fds[1].revents);
    if (n_wakes == 0) {
        pollfd only_wake{wake_fd_, POLLIN, 0};
        ::poll(&only_wake, 1, static_cast<int>(kSoonest.count()));
    }
    return is_signalled;
}

void HostReadings::run() {
    bool is_signalled = false;
    while (true) {
        actors::MemoryReadings readings = read_memory(root_, !watch_.is_forbidden());
        readings.is_signalled = is_signalled;
        {
            std::lock_guard lock(mutex_);
            if (is_over_) return;
            if (sink_) sink_(std::move(readings));
        }
        is_signalled = wait_for_next_look();
    }
}

}  // namespace pantheon::memory

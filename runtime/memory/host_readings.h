// The readings of this host: a thread that looks once a second, and sooner when it is woken.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "actors/memory/readings.h"
#include "runtime/memory/pressure_watch.h"

namespace pantheon::memory {

/// What the files below `root` say now: proc/meminfo, proc/pressure/memory, proc/self/cgroup and, below
/// sys/fs/cgroup, the process's control groups and all their ancestors, versions 1 and 2.
actors::MemoryReadings read_memory(const std::string& root, bool reads_pressure = true);

class HostReadings : public actors::ReadingSource {
  public:
    explicit HostReadings(std::string root, PressureWatch watch = {});
    ~HostReadings() override;
    HostReadings(const HostReadings&) = delete;
    HostReadings& operator=(const HostReadings&) = delete;

    void set_sink(std::function<void(actors::MemoryReadings)> sink) override;

  private:
    void run();
    bool wait_for_next_look();
    void wake();

    const std::string root_;
    PressureWatch watch_;
    const int wake_fd_;
    std::mutex mutex_;  // held while the sink is called
    std::function<void(actors::MemoryReadings)> sink_;
    bool is_over_ = false;
    std::thread thread_;  // started with the first sink
};

}  // namespace pantheon::memory

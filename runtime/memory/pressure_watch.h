// Being woken when memory gets short, instead of finding it out at the next look.
#pragma once

#include <string>

#include "runtime/config/host_defaults.h"

namespace pantheon::memory {

/// Follows systemd's protocol for $MEMORY_PRESSURE_WATCH and $MEMORY_PRESSURE_WRITE: a pressure file, a FIFO
/// or a socket to poll; "/dev/null" turns watching off. Without the variables it sets a trigger on
/// /proc/pressure/memory, where the kernel allows that. Nothing here is needed: a watch that cannot be had is
/// a watch that never wakes.
class PressureWatch {
  public:
    PressureWatch() = default;
    explicit PressureWatch(const config::Environment& env);
    ~PressureWatch();
    PressureWatch(PressureWatch&& other) noexcept;
    PressureWatch& operator=(PressureWatch&& other) noexcept;

    int fd() const { return fd_; }  // −1: none
    short events() const { return events_; }
    /// The service manager does not want pressure to be watched.
    bool is_forbidden() const { return is_forbidden_; }
    /// After the descriptor was ready: true when it was the service manager that spoke. Takes what there is
    /// to read, and closes a descriptor that has ended.
    bool take(short ready);

  private:
    void open_pressure_file(const std::string& path, const std::string& trigger);
    void close();

    int fd_ = -1;
    short events_ = 0;
    bool is_managers_ = false;
    bool is_forbidden_ = false;
};

}  // namespace pantheon::memory

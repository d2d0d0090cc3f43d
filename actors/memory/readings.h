// What the memory ladder is told about the host, as plain values, and where it comes from.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace pantheon::actors {

/// One bound on what this process may take: the host's memory, or the limit of a control group around it.
struct MemoryRoom {
    std::string name;  // for people: "host", "/sys/fs/cgroup/system.slice: memory.max"
    std::uint64_t limit_bytes = 0;
    std::uint64_t free_bytes = 0;  // pages that can be given back count as free
};

/// Share of the last ten seconds, in percent, in which some or all tasks waited for memory.
struct MemoryPressure {
    std::string name;  // whose
    double some = 0;
    double full = 0;
};

struct MemoryReadings {
    std::chrono::steady_clock::time_point at;
    std::vector<MemoryRoom> rooms;  // all of them bind
    std::vector<MemoryPressure> pressures;
    bool is_signalled = false;  // the service manager has said that memory is short
};

/// Where readings come from: about one a second, more only when the kernel or the service manager speaks up.
class ReadingSource {
  public:
    virtual ~ReadingSource() = default;
    /// Where readings go, the first one at once: called on the source's own thread, must not block. Replacing
    /// it is allowed at any time; after the call the former one is not used again. An empty function stops.
    virtual void set_sink(std::function<void(MemoryReadings)> sink) = 0;
};

}  // namespace pantheon::actors

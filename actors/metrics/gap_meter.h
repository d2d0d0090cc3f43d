// The pauses between two tokens of a stream that the daemon is to blame for, and the longest of them.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

namespace pantheon::actors {

/// One a stream: says how long its daemon has let it wait, not its client.
class GapClock {
  public:
    using Time = std::chrono::steady_clock::time_point;
    /// A token was accepted; the pause before it, if it counts.
    std::optional<std::chrono::milliseconds> token(Time now) {
        const auto gap = pause(now);
        since_ = now;
        return gap;
    }
    /// The pause so far, if one counts.
    std::optional<std::chrono::milliseconds> pause(Time now) const {
        if (!since_) return std::nullopt;
        return std::chrono::duration_cast<std::chrono::milliseconds>(now - *since_);
    }
    /// It is the client's turn, or the stream has been put aside: what passes from here on does not count.
    void stop() { since_.reset(); }
    bool is_running() const { return since_.has_value(); }
    /// The daemon may go on.
    void start(Time now) { since_ = now; }

  private:
    std::optional<Time> since_;
};

/// The longest gap of all streams, since the start and of the last minute (by parts of five seconds, so
/// between 55 and 60 of them).
class GapMeter {
  public:
    using Time = GapClock::Time;
    void add(std::chrono::milliseconds gap, Time now) {
        longest_ = std::max(longest_, gap);
        Part& part = parts_[static_cast<std::size_t>(number(now)) % kParts];
        if (part.number != number(now)) part = {number(now), {}};
        part.longest = std::max(part.longest, gap);
    }
    std::chrono::milliseconds since_start() const { return longest_; }
    std::chrono::milliseconds last_minute(Time now) const {
        std::chrono::milliseconds longest{0};
        for (const Part& part : parts_)
            if (part.number > number(now) - static_cast<std::int64_t>(kParts))
                longest = std::max(longest, part.longest);
        return longest;
    }

  private:
    static constexpr std::size_t kParts = 12;
    static constexpr std::chrono::seconds kPart{5};
    struct Part {
        std::int64_t number = -static_cast<std::int64_t>(kParts);
        std::chrono::milliseconds longest{0};
    };
    static std::int64_t number(Time now) { return now.time_since_epoch() / kPart; }

    std::array<Part, kParts> parts_;
    std::chrono::milliseconds longest_{0};
};

}  // namespace pantheon::actors

// Model files brought into the page cache before anybody asks for them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace pantheon::model {

/// Reads files from begin to end in a thread of its own that gives way to all others. A mapping that is read
/// here and there waits for the disk at every page: a fresh model's first answer is slower by the ratio of
/// the two speeds, often five or ten. What is in memory already is passed over. Ends early, without a word,
/// where a file cannot be read or memory does not suffice for the rest, and when this object does.
class FileWarmer {
  public:
    /// free_bytes: what the system could use for pages now; asked again and again, in the thread.
    FileWarmer(std::vector<std::string> paths, std::function<std::int64_t()> free_bytes);

    struct Counts {
        std::uint64_t seen_bytes = 0;  // that are in memory now as far as this object knows
        std::uint64_t read_bytes = 0;  // of these, that were not
    };
    Counts counts() const { return {seen_bytes_, read_bytes_}; }
    bool is_done() const { return is_done_; }

  private:
    void run(const std::stop_token& stop);
    bool warm(const std::string& path, const std::stop_token& stop);

    std::vector<std::string> paths_;
    std::function<std::int64_t()> free_bytes_;
    std::int64_t rest_bytes_ = 0;
    std::atomic<std::uint64_t> seen_bytes_{0}, read_bytes_{0};
    std::atomic<bool> is_done_{false};
    std::jthread thread_;  // last: it uses the rest
};

}  // namespace pantheon::model

// The bounded queue of requests that wait for a slot: higher priority first, then first come, first served.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include "actors/messages.h"

namespace pantheon::actors {

class AdmissionQueue {
  public:
    explicit AdmissionQueue(std::size_t limit) : limit_(limit) {}

    bool is_full() const { return jobs_.size() >= limit_; }
    bool is_empty() const { return jobs_.empty(); }
    std::size_t size() const { return jobs_.size(); }
    std::size_t limit() const { return limit_; }
    /// What waits already stays, also when it is more.
    void set_limit(std::size_t limit) { limit_ = limit; }

    /// Number of jobs that would be served before one of this priority.
    std::size_t ahead_of(std::int32_t priority) const;
    void push(JobPtr job);
    /// The job that pop() gives; null when nothing waits.
    const Job* front() const { return jobs_.empty() ? nullptr : jobs_.front().get(); }
    JobPtr pop();
    /// Takes the job out; empty when it is not waiting.
    JobPtr remove(TicketId ticket);
    /// Jobs whose deadline has passed, taken out.
    std::vector<JobPtr> remove_expired(Clock::time_point now);
    const std::deque<JobPtr>& jobs() const { return jobs_; }

  private:
    std::size_t limit_;
    std::deque<JobPtr> jobs_;  // in the order of service
};

}  // namespace pantheon::actors

// The bounded queue of requests that wait for a place: higher priority first, within a priority the clients
// in turn (deficit round robin over tokens), of one client first come, first served.
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

    /// Number of jobs that may be served before one of this priority.
    std::size_t ahead_of(std::int32_t priority) const;
    void push(JobPtr job);
    /// The job that pop() gives; null when nothing waits.
    const Job* front();
    JobPtr pop();
    /// Takes the job out; empty when it is not waiting.
    JobPtr remove(TicketId ticket);
    /// Jobs whose deadline has passed, taken out.
    std::vector<JobPtr> remove_expired(Clock::time_point now);
    const std::deque<JobPtr>& jobs() const { return jobs_; }

    /// Tokens, of prompt and reply, that a client may ask for in one turn. Who asks for more waits more
    /// turns.
    static constexpr std::int64_t kTokensPerTurn = 4096;

  private:
    /// A client with waiting jobs.
    struct Turn {
        RoutingId client;
        std::int64_t n_tokens = 0;  // that it may still have
        bool is_begun = false;      // it is first in line and has been given kTokensPerTurn
    };
    struct Choice {
        JobPtr job;
        std::int64_t n_tokens = 0;  // charged to its client
    };
    JobPtr first_of(const RoutingId& client, std::int32_t priority) const;
    void choose();
    void take_choice_back();
    void drop_idle_turns();

    std::size_t limit_;
    std::deque<JobPtr> jobs_;  // in the order of arrival
    std::deque<Turn> turns_;   // whose turn it is first
    std::optional<Choice> choice_;
};

}  // namespace pantheon::actors

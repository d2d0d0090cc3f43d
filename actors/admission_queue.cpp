#include "actors/admission_queue.h"

#include <algorithm>

namespace pantheon::actors {
namespace {

std::int64_t n_tokens_of(const Job& job) {
    return static_cast<std::int64_t>(job.prepared->prompt.size()) + job.prepared->max_tokens;
}

}  // namespace

std::size_t AdmissionQueue::ahead_of(std::int32_t priority) const {
    return static_cast<std::size_t>(std::count_if(
        jobs_.begin(), jobs_.end(), [&](const JobPtr& job) { return job->prepared->priority >= priority; }));
}

void AdmissionQueue::push(JobPtr job) {
    if (choice_ && job->prepared->priority > choice_->job->prepared->priority) take_choice_back();
    const RoutingId& client = job->reply.client;
    const bool is_in_line =
        std::any_of(turns_.begin(), turns_.end(), [&](const Turn& turn) { return turn.client == client; });
    if (!is_in_line) turns_.push_back({client});
    jobs_.push_back(std::move(job));
}

JobPtr AdmissionQueue::first_of(const RoutingId& client, std::int32_t priority) const {
    const auto found = std::find_if(jobs_.begin(), jobs_.end(), [&](const JobPtr& job) {
        return job->reply.client == client && job->prepared->priority == priority;
    });
    return found == jobs_.end() ? nullptr : *found;
}

/// Ends: the client of the most urgent job is in line, and each round brings it kTokensPerTurn nearer.
void AdmissionQueue::choose() {
    std::int32_t priority = jobs_.front()->prepared->priority;
    for (const JobPtr& job : jobs_) priority = std::max(priority, job->prepared->priority);
    while (true) {
        Turn& turn = turns_.front();
        if (JobPtr job = first_of(turn.client, priority)) {
            if (!turn.is_begun) turn.n_tokens += kTokensPerTurn;
            turn.is_begun = true;
            const std::int64_t n_tokens = n_tokens_of(*job);
            if (n_tokens <= turn.n_tokens) {
                turn.n_tokens -= n_tokens;
                choice_ = Choice{std::move(job), n_tokens};
                return;
            }
        }
        turn.is_begun = false;
        std::rotate(turns_.begin(), turns_.begin() + 1, turns_.end());
    }
}

void AdmissionQueue::take_choice_back() {
    for (Turn& turn : turns_)
        if (turn.client == choice_->job->reply.client) turn.n_tokens += choice_->n_tokens;
    choice_.reset();
}

const Job* AdmissionQueue::front() {
    if (jobs_.empty()) return nullptr;
    if (!choice_) choose();
    return choice_->job.get();
}

JobPtr AdmissionQueue::pop() {
    front();
    JobPtr job = std::move(choice_->job);
    choice_.reset();
    std::erase(jobs_, job);
    drop_idle_turns();
    return job;
}

JobPtr AdmissionQueue::remove(TicketId ticket) {
    const auto found =
        std::find_if(jobs_.begin(), jobs_.end(), [&](const JobPtr& job) { return job->ticket == ticket; });
    if (found == jobs_.end()) return nullptr;
    JobPtr job = *found;
    if (choice_ && choice_->job == job) take_choice_back();
    jobs_.erase(found);
    drop_idle_turns();
    return job;
}

std::vector<JobPtr> AdmissionQueue::remove_expired(Clock::time_point now) {
    std::vector<JobPtr> expired;
    for (const JobPtr& job : jobs_)
        if (job->prepared->deadline && *job->prepared->deadline <= now) expired.push_back(job);
    for (const JobPtr& job : expired) remove(job->ticket);
    return expired;
}

/// Who has nothing to ask for saves nothing up.
void AdmissionQueue::drop_idle_turns() {
    std::erase_if(turns_, [&](const Turn& turn) {
        return std::none_of(jobs_.begin(), jobs_.end(),
                            [&](const JobPtr& job) { return job->reply.client == turn.client; });
    });
}

}  // namespace pantheon::actors

#include "actors/admission_queue.h"

#include <algorithm>

namespace pantheon::actors {

std::size_t AdmissionQueue::ahead_of(std::int32_t priority) const {
    return static_cast<std::size_t>(std::count_if(
        jobs_.begin(), jobs_.end(), [&](const JobPtr& job) { return job->prepared->priority >= priority; }));
}

void AdmissionQueue::push(JobPtr job) {
    const auto place = jobs_.begin() + static_cast<std::ptrdiff_t>(ahead_of(job->prepared->priority));
    jobs_.insert(place, std::move(job));
}

JobPtr AdmissionQueue::pop() {
    JobPtr job = std::move(jobs_.front());
    jobs_.pop_front();
    return job;
}

JobPtr AdmissionQueue::remove(TicketId ticket) {
    const auto found =
        std::find_if(jobs_.begin(), jobs_.end(), [&](const JobPtr& job) { return job->ticket == ticket; });
    if (found == jobs_.end()) return nullptr;
    JobPtr job = *found;
    jobs_.erase(found);
    return job;
}

std::vector<JobPtr> AdmissionQueue::remove_expired(Clock::time_point now) {
    std::vector<JobPtr> expired;
    std::erase_if(jobs_, [&](const JobPtr& job) {
        if (!job->prepared->deadline || *job->prepared->deadline > now) return false;
        expired.push_back(job);
        return true;
    });
    return expired;
}

}  // namespace pantheon::actors

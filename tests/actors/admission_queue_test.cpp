#include "actors/admission_queue.h"

#include <gtest/gtest.h>

namespace pantheon::actors {
namespace {

struct Asked {
    const char* client;
    std::int64_t n_tokens = 1000;
    std::int32_t priority = 0;
};

JobPtr job(std::uint64_t ticket, const Asked& asked) {
    auto prepared = std::make_shared<Prepared>();
    prepared->max_tokens = asked.n_tokens;
    prepared->priority = asked.priority;
    auto result = std::make_shared<Job>();
    result->ticket = TicketId(ticket);
    result->reply.client = asked.client;
    result->prepared = prepared;
    return result;
}

/// The clients, in the order in which they are served.
std::string served(AdmissionQueue& queue) {
    std::string order;
    while (!queue.is_empty()) {
        const Job* next = queue.front();
        const JobPtr popped = queue.pop();
        EXPECT_EQ(popped.get(), next);
        order += popped->reply.client;
    }
    return order;
}

TEST(AdmissionQueueTest, ServesByPriorityThenByTurns) {
    const struct {
        const char* name;
        std::vector<Asked> asked;
        const char* want;
    } cases[] = {
        {"one client: first come, first served", {{"a"}, {"a"}, {"a"}}, "aaa"},
        {"a burst of one client does not hold up another",
         {{"a", 4096}, {"a", 4096}, {"a", 4096}, {"b", 4096}},
         "abaa"},
        {"small requests share a turn", {{"a"}, {"a"}, {"a"}, {"a"}, {"a"}, {"b"}}, "aaaaba"},
        {"large requests wait more turns",
         {{"a", 9000}, {"b", 3000}, {"b", 3000}, {"b", 3000}, {"b", 3000}},
         "bbabb"},
        {"a higher priority first, whoever asks", {{"a"}, {"b"}, {"a", 1000, 3}, {"b", 1000, 5}}, "baab"},
        {"three clients in turn", {{"a", 4096}, {"a", 4096}, {"b", 4096}, {"b", 4096}, {"c", 4096}}, "abcab"},
    };
    for (const auto& c : cases) {
        SCOPED_TRACE(c.name);
        AdmissionQueue queue(100);
        std::uint64_t ticket = 0;
        for (const Asked& asked : c.asked) queue.push(job(++ticket, asked));
        EXPECT_EQ(served(queue), c.want);
    }
}

TEST(AdmissionQueueTest, WhatWasChosenYieldsToAHigherPriorityAndIsNotChargedTwice) {
    AdmissionQueue queue(100);
    queue.push(job(1, {"a", 4096}));
    EXPECT_EQ(queue.front()->ticket, TicketId(1));
    queue.push(job(2, {"b", 4096, 1}));
    EXPECT_EQ(queue.front()->ticket, TicketId(2));
    EXPECT_EQ(queue.pop()->ticket, TicketId(2));
    EXPECT_EQ(queue.pop()->ticket, TicketId(1));
}

TEST(AdmissionQueueTest, WhatWasChosenCanBeRemoved) {
    AdmissionQueue queue(100);
    queue.push(job(1, {"a"}));
    queue.push(job(2, {"a"}));
    EXPECT_EQ(queue.front()->ticket, TicketId(1));
    EXPECT_EQ(queue.remove(TicketId(1))->ticket, TicketId(1));
    EXPECT_EQ(queue.front()->ticket, TicketId(2));
    EXPECT_EQ(queue.remove(TicketId(9)), nullptr);
    queue.remove(TicketId(2));
    EXPECT_EQ(queue.front(), nullptr);
}

}  // namespace
}  // namespace pantheon::actors

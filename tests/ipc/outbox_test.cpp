#include "ipc/outbox.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <map>
#include <thread>

namespace pantheon::ipc {
namespace {

bool is_readable(int fd) {
    pollfd item{fd, POLLIN, 0};
    return poll(&item, 1, 0) == 1;
}

TEST(OutboxTest, IsReadableExactlyWhileSomethingWaits) {
    Outbox outbox;
    std::vector<Outgoing> batch;
    EXPECT_FALSE(is_readable(outbox.fd()));
    outbox.push({"a", "1", false});
    outbox.push({"a", "2", true});
    EXPECT_TRUE(is_readable(outbox.fd()));
    outbox.take(batch);
    EXPECT_FALSE(is_readable(outbox.fd()));
    ASSERT_EQ(batch.size(), 2u);
    EXPECT_EQ(batch[0].frame, "1");
    EXPECT_TRUE(batch[1].is_final);
    outbox.take(batch);
    EXPECT_TRUE(batch.empty());
}

TEST(OutboxTest, WakesWithoutAMessage) {
    Outbox outbox;
    outbox.wake();
    EXPECT_TRUE(is_readable(outbox.fd()));
}

TEST(OutboxTest, ManyProducersLoseNothingAndKeepTheirOrder) {
    constexpr int kProducers = 4, kEach = 20'000;
    Outbox outbox;
    std::vector<std::thread> producers;
    for (int p = 0; p < kProducers; ++p)
        producers.emplace_back([&outbox, p] {
            for (int i = 0; i < kEach; ++i) outbox.push({std::to_string(p), std::to_string(i), false});
        });
    std::map<std::string, int> next;
    std::vector<Outgoing> batch;
    for (int n_seen = 0; n_seen < kProducers * kEach;) {
        pollfd item{outbox.fd(), POLLIN, 0};
        ASSERT_EQ(poll(&item, 1, 10'000), 1) << "a push without a wake-up after " << n_seen;
        outbox.take(batch);
        for (const Outgoing& out : batch) ASSERT_EQ(out.frame, std::to_string(next[out.client]++));
        n_seen += static_cast<int>(batch.size());
    }
    for (std::thread& producer : producers) producer.join();
}

}  // namespace
}  // namespace pantheon::ipc

#include "ipc/unread_queue.h"

#include <gtest/gtest.h>

namespace pantheon::ipc {
namespace {

TEST(UnreadQueueTest, StallsBeyondTheLimitAndResumesAtHalfOfIt) {
    UnreadQueue queue(4);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(queue.push("x"), UnreadChange::none);
    EXPECT_EQ(queue.push("x"), UnreadChange::stalled);
    EXPECT_EQ(queue.push("x"), UnreadChange::none) << "told once";
    EXPECT_EQ(queue.pop(), UnreadChange::none);
    EXPECT_EQ(queue.pop(), UnreadChange::none);
    EXPECT_EQ(queue.pop(), UnreadChange::none);
    EXPECT_EQ(queue.pop(), UnreadChange::resumed);
    EXPECT_EQ(queue.size(), 2u);
    EXPECT_EQ(queue.pop(), UnreadChange::none);
}

TEST(UnreadQueueTest, KeepsOrder) {
    UnreadQueue queue(1);
    for (const char* text : {"a", "b", "c"}) (void)queue.push(text);
    for (const char* text : {"a", "b", "c"}) {
        EXPECT_EQ(queue.front(), text);
        (void)queue.pop();
    }
    EXPECT_TRUE(queue.empty());
}

TEST(UnreadQueueTest, OverrunsByCountAndByBytes) {
    UnreadQueue by_count(2);
    for (std::size_t i = 0; i < 2 + UnreadQueue::kSlack; ++i)
        ASSERT_NE(by_count.push("x"), UnreadChange::overrun);
    EXPECT_EQ(by_count.push("x"), UnreadChange::overrun);
    EXPECT_EQ(by_count.size(), 2 + UnreadQueue::kSlack) << "the frame was not kept";

    UnreadQueue by_bytes(1000);
    ASSERT_EQ(by_bytes.push(std::string(UnreadQueue::kMaxBytes + 1, 'x')), UnreadChange::none)
        << "one reply always fits";
    EXPECT_EQ(by_bytes.push("x"), UnreadChange::overrun);
    by_bytes.clear();
    EXPECT_EQ(by_bytes.push("x"), UnreadChange::none);
}

}  // namespace
}  // namespace pantheon::ipc

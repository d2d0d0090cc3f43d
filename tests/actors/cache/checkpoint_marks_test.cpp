#include "actors/cache/checkpoint_marks.h"

#include <gtest/gtest.h>

namespace pantheon::actors {
namespace {

TEST(CheckpointMarksTest, FollowTheRules) {
    struct Case {
        const char* name;
        std::int64_t n_tokens;
        std::vector<std::int64_t> message_ends;
        std::int64_t n_cached, n_shared, every;
        std::vector<std::int64_t> want;
    };
    const Case cases[] = {
        {"a short raw prompt is kept at its end", 100, {}, 0, 0, 1024, {100}},
        {"a long one also before its last token", 300, {}, 0, 0, 1024, {299, 300}},
        {"and at every multiple", 2500, {}, 0, 0, 1024, {1024, 2048, 2499, 2500}},
        {"multiples after what was cached", 2500, {}, 1024, 1024, 1024, {2048, 2499, 2500}},
        {"a multiple that is the end", 2048, {}, 0, 0, 1024, {1024, 2047, 2048}},
        {"no multiples", 2500, {}, 0, 0, 0, {2499, 2500}},
        {"messages", 100, {20, 50, 95}, 0, 0, 1024, {20, 50, 95, 100}},
        {"a message end near the end serves a repeated prompt", 400, {20, 395}, 0, 0, 0, {20, 395, 400}},
        {"a message end far from it does not", 400, {20, 300}, 0, 0, 0, {20, 300, 399, 400}},
        {"only what comes after the resumption", 100, {20, 50, 95}, 50, 60, 0, {60, 95, 100}},
        {"where the prompt leaves what is known", 200, {}, 0, 77, 0, {77, 200}},
        {"a prompt that is known whole", 200, {}, 0, 200, 0, {199, 200}},
        {"a prompt that is known but for a token", 200, {}, 0, 199, 0, {199, 200}},
        {"one token", 1, {}, 0, 0, 1024, {1}},
        {"one token that is known", 1, {}, 0, 1, 1024, {1}},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        EXPECT_EQ(checkpoint_marks({c.n_tokens, c.message_ends, c.n_cached, c.n_shared}, c.every), c.want);
    }
}

TEST(MessageEndsTest, AreBeforeEveryMessageButTheFirst) {
    const std::vector<TokenId> prompt{7, 1, 2, 7, 3, 7};
    EXPECT_EQ(message_ends(prompt, 7), (std::vector<std::int64_t>{3, 5}));
    EXPECT_TRUE(message_ends(prompt, -1).empty());
    EXPECT_TRUE(message_ends({}, 7).empty());
}

}  // namespace
}  // namespace pantheon::actors

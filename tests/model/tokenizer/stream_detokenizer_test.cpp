#include "model/tokenizer/stream_detokenizer.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "model/tokenizer/utf8.h"

namespace pantheon::model {
namespace {

TEST(StreamDetokenizer, HoldsBackAnUnfinishedCharacter) {
    StreamDetokenizer d;
    EXPECT_EQ(d.push("a\xF0\x9F"), "a");
    EXPECT_FALSE(d.is_empty());
    EXPECT_EQ(d.push("\x99"), "");
    EXPECT_EQ(d.push("\x82!\xC3"), "\U0001F642!");
    EXPECT_EQ(d.push("\xA9"), "\u00E9");
    EXPECT_TRUE(d.is_empty());
    EXPECT_EQ(d.flush(), "");
}

TEST(StreamDetokenizer, FlushesWhatIsLeftAsReplacementCharacters) {
    StreamDetokenizer d;
    EXPECT_EQ(d.push("x\xE2\x82"), "x");
    EXPECT_EQ(d.flush(), "\uFFFD\uFFFD");
    EXPECT_TRUE(d.is_empty());
    EXPECT_EQ(d.push("\u20AC"), "\u20AC");
}

TEST(StreamDetokenizer, DoesNotWaitForAByteThatCannotHelp) {
    StreamDetokenizer d;
    EXPECT_EQ(d.push("\xE2\x82"), "");
    EXPECT_EQ(d.push("z"), "\uFFFD\uFFFDz");
    EXPECT_EQ(d.push("\xED\xA0"), "\uFFFD\uFFFD");  // would be a surrogate
    EXPECT_EQ(d.push("\x80\xFF"), "\uFFFD\uFFFD");
}

TEST(StreamDetokenizer, EveryCutGivesTheWholeText) {
    std::mt19937 random(11);
    constexpr unsigned char kBytes[] = {'a',  ' ',  0x80, 0x9F, 0xA0, 0xBF, 0xC2,
                                        0xC0, 0xE0, 0xE2, 0xED, 0xF0, 0xF4, 0xFF};
    for (int round = 0; round < 2000; ++round) {
        std::string bytes;
        for (int i = 0; i < 12; ++i) {
            if (random() % 4 == 0)
                append_utf8(bytes, random() % 2 ? 0x20AC : 0x1F642);
            else
                bytes += static_cast<char>(kBytes[random() % std::size(kBytes)]);
        }
        const std::string whole = to_valid_utf8(bytes);
        StreamDetokenizer d;
        std::string streamed;
        for (std::size_t pos = 0; pos < bytes.size();) {
            const std::size_t n = 1 + random() % 3;
            const std::string part = d.push(std::string_view(bytes).substr(pos, n));
            EXPECT_TRUE(is_valid_utf8(part));
            streamed += part;
            pos += n;
        }
        streamed += d.flush();
        ASSERT_EQ(streamed, whole);
    }
}

}  // namespace
}  // namespace pantheon::model

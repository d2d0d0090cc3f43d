// What people type and what they read: repaired UTF-8, ids, the status page, files that appear whole.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "runtime/cli/numbers.h"
#include "runtime/cli/output_file.h"
#include "runtime/cli/status_text.h"
#include "runtime/cli/utf8_repair.h"

namespace pantheon::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(RepairUtf8Test, FollowsTheTokenizersRuleAsFarAsValidTextCan) {
    struct Case {
        std::string bytes;
        std::string text;
    };
    const std::string bad = "\xEF\xBF\xBD";
    const Case kCases[] = {
        {"", ""},
        {"plain", "plain"},
        {"h\xC3\xA9 \xE4\xB8\xAD \xF0\x9F\x98\x80", "h\xC3\xA9 \xE4\xB8\xAD \xF0\x9F\x98\x80"},
        {"\x80", bad},  // a continuation byte leads nothing
        {"\xFF"
         "a",
         bad + "a"},              // nor does this
        {"\xE4\xB8", bad + bad},  // cut off: one for each byte
        {"\xE4"
         "ab",
         bad + "ab"},                                        // the next byte is no continuation
        {std::string("\xC0\x80", 2), std::string(1, '\0')},  // overlong, re-encoded
        {"\xE0\x99\xAD", "\xD9\xAD"},
        {"\xED\xA0\x80", bad + bad + bad},            // a surrogate
        {"\xF4\x90\x80\x80", bad + bad + bad + bad},  // above U+10FFFF
    };
    for (const Case& c : kCases) EXPECT_EQ(repair_utf8(c.bytes), c.text) << testing::PrintToString(c.bytes);
}

TEST(ParseTokenIdsTest, TakesDecimalsBetweenAnyWhiteSpace) {
    EXPECT_THAT(*parse_token_ids(""), ElementsAre());
    EXPECT_THAT(*parse_token_ids(" \n"), ElementsAre());
    EXPECT_THAT(*parse_token_ids("1 2\n\t3\r\n 2147483647"), ElementsAre(1, 2, 3, 2147483647));
}

TEST(ParseTokenIdsTest, NamesTheWordThatIsNoId) {
    for (const char* word : {"x", "-1", "1,2", "0x10", "1.0", "2147483648", "+1"}) {
        const auto ids = parse_token_ids(std::string("7 ") + word + " 8");
        ASSERT_FALSE(ids) << word;
        EXPECT_EQ(ids.error().message(), std::string("word 2 is no token id: ") + word);
    }
}

TEST(StatusTextTest, ShowsWhatIsThere) {
    const Json status = Json::parse(R"({
        "version": "0.1.0", "protocol": 1, "state": "ready", "uptime_s": 7260,
        "model": {"path": "/m.gguf", "name": "tiny", "n_layer": 4, "n_vocab": 256, "fingerprint": "00ff"},
        "engines": [{"name": "main", "state": "ready", "dies": [{"id": "cpu", "state": "ready", "isa": "scalar",
            "threads": 2, "weights_bytes": 2048, "kv_used_bytes": 0, "kv_pool_bytes": 1048576}],
            "slots": {"configured": 16, "effective": 16, "reason": "configured", "busy": 1, "parked": 0},
            "queue": {"waiting": 0, "limit": 64}, "last_step_age_ms": 12}],
        "cache": {"bytes": 1024, "limit_bytes": 2048, "hits": 4, "misses": 5, "states": "f16"},
        "config": {"path": "/c.toml", "pending_restart": ["kv.n_ctx"]},
        "requests": [{"id": "a", "phase": "decode", "age_ms": 5}]})");
    const std::string text = status_text(status);
    for (const char* part :
         {"daemon    ready, version 0.1.0, protocol 1, up 2 h 1 min\n",
          "model     tiny, /m.gguf, 4 layers, 256 vocab",
          "engine    main, ready, slots 1 busy of 16 (configured), parked 0, queue 0 of 64, last step 12 ms "
          "ago\n",
          "  die     cpu, ready, isa scalar, 2 threads, weights 2.0 KiB, KV 0 B of 1.0 MiB\n",
          "cache     1.0 KiB of 2.0 KiB, hits 4, misses 5, states in f16\n", "config    /c.toml\n",
          "  waits   kv.n_ctx\n", "request   a, decode, 5 ms old\n"})
        EXPECT_THAT(text, HasSubstr(part)) << text;
}

TEST(StatusTextTest, SurvivesAnyShape) {
    EXPECT_EQ(status_text(Json::object()), "");
    EXPECT_EQ(status_text(Json()), "");
    status_text(
        Json::parse(R"({"engines": 3, "model": [], "config": {"pending_restart": "x"}, "uptime_s": "y"})"));
    status_text(Json::parse(R"({"engines": [1, null, {"dies": [[]]}], "cache": {"bytes": -1}})"));
}

class OutputFileTest : public testing::Test {
  protected:
    void SetUp() override {
        dir_ = std::filesystem::temp_directory_path() / ("output_file_test." + std::to_string(getpid()));
        std::filesystem::create_directories(dir_);
    }
    void TearDown() override { std::filesystem::remove_all(dir_); }
    std::size_t n_files() const {
        return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(dir_), {}));
    }
    static std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }
    std::filesystem::path dir_;
};

TEST_F(OutputFileTest, AppearsOnlyWhenItIsComplete) {
    const std::string path = dir_ / "out";
    {
        auto out = OutputFile::create(path);
        ASSERT_TRUE(out);
        ASSERT_TRUE(out->write(bytes("abc")));
        EXPECT_FALSE(std::filesystem::exists(path));
        ASSERT_TRUE(out->commit());
    }
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    EXPECT_EQ(text.str(), "abc");
    EXPECT_EQ(n_files(), 1u);
}

TEST_F(OutputFileTest, LeavesNothingWithoutCommitAndKeepsWhatWasThere) {
    const std::string path = dir_ / "out";
    std::ofstream(path) << "old";
    {
        auto out = OutputFile::create(path);
        ASSERT_TRUE(out);
        ASSERT_TRUE(out->write(bytes("new")));
    }
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    EXPECT_EQ(text.str(), "old");
    EXPECT_EQ(n_files(), 1u);
}

TEST_F(OutputFileTest, ADeviceIsWrittenDirectlyAndAFullOneIsAnError) {
    auto null = OutputFile::create("/dev/null");
    ASSERT_TRUE(null);
    EXPECT_TRUE(null->write(bytes("abc")));
    EXPECT_TRUE(null->commit());

    auto full = OutputFile::create("/dev/full");
    ASSERT_TRUE(full);
    (void)full->write(bytes("abc"));
    const Status status = full->commit();
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code(), Code::resource_exhausted);
    EXPECT_FALSE(OutputFile::create(dir_ / "none" / "out"));
}

}  // namespace
}  // namespace pantheon::cli

// The rows themselves, what is made from them for people, and the reload diff.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "runtime/config/diff.h"
#include "runtime/config/load.h"
#include "runtime/config/manual.h"
#include "runtime/config/nearest.h"
#include "runtime/config/schema.h"

namespace pantheon::config {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

HostDefaults test_host() {
    HostDefaults host;
    host.model_path = "/opt/model.gguf";
    host.endpoint = "ipc:///tmp/test.sock";
    return host;
}

std::string annotated_file() {
    std::ifstream in(PANTHEON_SOURCE_DIR "/etc/pantheond.toml");
    std::ostringstream text;
    text << in.rdbuf();
    EXPECT_FALSE(text.str().empty());
    return text.str();
}

std::shared_ptr<const Config> loaded(const std::string& text) {
    const ConfigLoad result = load_config_text(text, "f.toml", test_host());
    EXPECT_TRUE(result.is_ok()) << result.report();
    return result.config ? result.config : std::make_shared<Config>();
}

TEST(ConfigSchemaTest, RowsAreCompleteAndDistinct) {
    std::set<std::string_view> paths;
    for (const KeyRow& row : schema()) {
        SCOPED_TRACE(row.path);
        EXPECT_TRUE(paths.insert(row.path).second);
        EXPECT_FALSE(row.help.empty());
        EXPECT_FALSE(row.fallback.empty());
        EXPECT_EQ(row.apply_auto != nullptr, row.fallback == "\"auto\"");
        EXPECT_EQ(row.apply_auto != nullptr, !row.auto_meaning.empty());
        EXPECT_EQ(find_row(row.path), &row);
        if (!row.alias_of.empty()) {
            EXPECT_NE(find_row(row.alias_of), nullptr);
        }
    }
}

TEST(ConfigSchemaTest, AnnotatedFileShowsEveryKeyWithItsDefault) {
    EXPECT_THAT(check_annotated_file(annotated_file()), IsEmpty());
}

TEST(ConfigSchemaTest, CheckOfTheAnnotatedFileSeesEachMistake) {
    const std::string text = annotated_file();
    struct Edit {
        const char* from;
        const char* to;
        const char* problem;
    };
    constexpr Edit kEdits[] = {
        {"#n_ctx = 4096\n", "", "kv.n_ctx: is not shown"},
        {"#n_ctx = 4096\n", "#n_ctx = 2048\n", "kv.n_ctx: shown as 2048, the default is 4096"},
        {"#n_ctx = 4096\n", "#n_ctx = 4096\n#n_ctx = 4096\n", "kv.n_ctx: shown twice"},
        {"#n_ctx = 4096\n", "#n_ctx = 4096\n#n_cty = 1\n", "kv.n_cty: is no key"},
    };
    for (const Edit& edit : kEdits) {
        std::string changed = text;
        changed.replace(changed.find(edit.from), std::string(edit.from).size(), edit.to);
        EXPECT_THAT(check_annotated_file(changed), testing::ElementsAre(edit.problem));
    }
}

TEST(ConfigSchemaTest, AnnotatedFileIsValidAsItIsAndWithEveryDefaultWrittenOut) {
    const std::string text = annotated_file();
    const auto defaults = loaded("");
    EXPECT_THAT(diff_config(*defaults, *loaded(text)), IsEmpty());
    // engine.split and placement.split are one key; written out, only one of them may stand.
    std::string written = std::regex_replace(text, std::regex("(^|\n)#(?=[a-z])"), "$1");
    written.replace(written.find("[placement]"), written.find("[cpu]") - written.find("[placement]"), "");
    EXPECT_NE(written, text);
    EXPECT_THAT(diff_config(*defaults, *loaded(written)), IsEmpty());
}

TEST(ConfigSchemaTest, ManualPageHasEveryKey) {
    const std::string page = manual_page();
    for (const KeyRow& row : schema()) {
        EXPECT_THAT(page, HasSubstr(".Sh [" + std::string(row.table()) + "]\n"));
        EXPECT_THAT(page, HasSubstr(".It Cm " + std::string(row.leaf()) + "\n"));
    }
    for (const char c : page) ASSERT_LT(static_cast<unsigned char>(c), 0x80) << "roff reads no UTF-8";
    EXPECT_THAT(page, HasSubstr("Takes an integer, 16 ... 262144 tokens.\nDefault: 4096 (restart).\n"));
}

TEST(ConfigDiffTest, EqualConfigurationsDoNotDiffer) {
    EXPECT_THAT(diff_config(*loaded(""), *loaded("kv.n_ctx = 4096\n")), IsEmpty());
}

TEST(ConfigDiffTest, SaysWhatChangedAndWhatWaitsForARestart) {
    const auto changes = diff_config(*loaded("kv.n_ctx = 64\nengine.slots = 2\n"),
                                     *loaded("log.level = 'debug'\nkv.n_ctx = 128\nengine.slots = "
                                             "2\nsampling.temperature = 0\nipc.admins = ['root']\n"));
    ASSERT_EQ(changes.size(), 4u);
    EXPECT_EQ(changes[0].path, "ipc.admins");
    EXPECT_EQ(changes[0].after, "[\"root\"]");
    EXPECT_EQ(changes[1].path, "kv.n_ctx");
    EXPECT_EQ(changes[1].before, "64");
    EXPECT_EQ(changes[1].after, "128");
    EXPECT_EQ(changes[1].reload, Reload::restart);
    EXPECT_EQ(changes[2].path, "sampling.temperature");
    EXPECT_EQ(changes[2].before, "\"auto\"");
    EXPECT_EQ(changes[2].after, "0.0");
    EXPECT_EQ(changes[3].path, "log.level");
    EXPECT_EQ(changes[3].reload, Reload::live);
}

TEST(NearestNameTest, CountsEdits) {
    struct Case {
        const char* a;
        const char* b;
        int distance;
    };
    constexpr Case kCases[] = {{"", "", 0},        {"", "abc", 3},    {"abc", "abc", 0},
                               {"abd", "abc", 1},  {"acb", "abc", 1}, {"ab", "abc", 1},
                               {"abcd", "abc", 1}, {"A-b", "a_b", 0}, {"kitten", "sitting", 3}};
    for (const Case& c : kCases) {
        EXPECT_EQ(edit_distance(c.a, c.b), c.distance) << c.a << " " << c.b;
        EXPECT_EQ(edit_distance(c.b, c.a), c.distance) << c.b << " " << c.a;
    }
}

TEST(NearestNameTest, WhatBeginsLikeItComesBeforeWhatLooksLikeIt) {
    constexpr std::string_view kNames[] = {"generate", "status", "ping", "drain"};
    EXPECT_EQ(nearest_name("gen", kNames), "generate");
    EXPECT_EQ(nearest_name("ST", kNames), "status");
    EXPECT_EQ(nearest_name("s", kNames), "ping");  // one letter says too little; the shortest is nearest
    EXPECT_EQ(nearest_name("genrate", kNames), "generate");
    EXPECT_EQ(nearest_name("pong", kNames), "ping");
    EXPECT_EQ(nearest_name("x", {}), "");
}

}  // namespace
}  // namespace pantheon::config

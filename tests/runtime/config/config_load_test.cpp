// Loading a configuration: defaults, and every way a file can be wrong, with its place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "runtime/config/load.h"
#include "runtime/config/schema.h"

namespace pantheon::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

HostDefaults test_host() {
    HostDefaults host;
    host.model_path = "/opt/model.gguf";
    host.endpoint = "ipc:///tmp/test.sock";
    host.n_cores = 3;
    host.free_bytes = 5000;
    host.free_disk_bytes = [](const std::string& dir) { return dir == "/big" ? 900 : 70; };
    return host;
}

ConfigLoad load(std::string_view text) {
    return load_config_text(text, "f.toml", test_host());
}

std::shared_ptr<const Config> loaded(std::string_view text) {
    const ConfigLoad result = load(text);
    EXPECT_TRUE(result.is_ok()) << result.report();
    return result.config ? result.config : std::make_shared<Config>();
}

TEST(ConfigLoadTest, SpilledStatesMayTakeATenthOfTheDiskThatTheFolderIsOn) {
    EXPECT_EQ(loaded("")->sessions.disk_bytes, 0) << "no folder";
    EXPECT_EQ(loaded("sessions.dir = '/big'")->sessions.disk_bytes, 90);
    EXPECT_EQ(loaded("sessions.disk_bytes = 'auto'\nsessions.dir = '/small'")->sessions.disk_bytes, 7);
    EXPECT_EQ(loaded("sessions.dir = '/big'\nsessions.disk_bytes = 0")->sessions.disk_bytes, 0);
    EXPECT_EQ(loaded("sessions.dir = '/big'\nsessions.disk_bytes = 12345")->sessions.disk_bytes, 12345);
}

TEST(ConfigLoadTest, EmptyFileGivesEveryDefault) {
    const auto config = loaded("");
    EXPECT_EQ(config->file, "f.toml");
    EXPECT_EQ(config->model.path, "/opt/model.gguf");
    EXPECT_EQ(config->ipc.endpoint, "ipc:///tmp/test.sock");
    EXPECT_EQ(config->ipc.max_unread, 1024);
    EXPECT_EQ(config->ipc.stall, std::chrono::milliseconds(30000));
    EXPECT_TRUE(config->ipc.admin_uids.empty());
    ASSERT_EQ(config->engines.size(), 1u);
    EXPECT_THAT(config->engines[0].dies, ElementsAre("cpu"));
    EXPECT_EQ(config->engines[0].slots, 16);
    EXPECT_EQ(config->cpu.threads, 3);
    EXPECT_TRUE(config->cpu.repack);
    EXPECT_EQ(config->kv.n_ctx, 4096);
    EXPECT_EQ(config->kv.format, model::KvFormat::q4_0);
    EXPECT_EQ(config->kv.sink, 16);
    EXPECT_EQ(config->kv.window, 128);
    EXPECT_EQ(config->kv.overflow, model::KvOverflow::stop);
    EXPECT_FALSE(config->kv.pool_bytes);
    EXPECT_EQ(config->die.hang, std::chrono::milliseconds(10000));
    EXPECT_EQ(config->scheduler.max_gap, std::chrono::milliseconds(200));
    EXPECT_EQ(config->scheduler.queue, 64);
    EXPECT_EQ(config->limits.max_tokens, 4096);
    EXPECT_FALSE(config->sampling.temperature);
    EXPECT_FALSE(config->sampling.top_k);
    EXPECT_EQ(config->daemon.drain, std::chrono::seconds(30));
    EXPECT_FALSE(config->daemon.watch);
    EXPECT_EQ(config->log.level, LogLevel::info);
}

TEST(ConfigLoadTest, DottedKeysAndTablesAreEqual) {
    const auto dotted = loaded("kv.n_ctx = 512\nkv.format = 'f32'\nengine.slots = 2\nlog.level = 'off'\n");
    const auto tables =
        loaded("[kv]\nn_ctx = 512\nformat = 'f32'\n[engine]\nslots = 2\n[log]\nlevel = 'off'\n");
    const auto in_line =
        loaded("kv = {n_ctx = 512, format = 'f32'}\nengine = {slots = 2}\nlog = {level = 'off'}\n");
    for (const auto& config : {dotted, tables, in_line}) {
        EXPECT_EQ(config->kv.n_ctx, 512);
        EXPECT_EQ(config->kv.format, model::KvFormat::f32);
        EXPECT_EQ(config->engines[0].slots, 2);
        EXPECT_EQ(config->log.level, LogLevel::off);
    }
}

TEST(ConfigLoadTest, OneElementOfAnEngineArrayIsAnEngine) {
    const auto config = loaded("[[engine]]\nname = 'a'\ndies = ['ref']\nslots = 3\n");
    ASSERT_EQ(config->engines.size(), 1u);
    EXPECT_EQ(config->engines[0].name, "a");
    EXPECT_THAT(config->engines[0].dies, ElementsAre("ref"));
    EXPECT_EQ(config->engines[0].slots, 3);
}

TEST(ConfigLoadTest, StatesAreKeptInF32UnlessTheFileSaysOtherwise) {
    EXPECT_FALSE(loaded("")->sessions.f16);
    EXPECT_TRUE(loaded("sessions.f16 = true\n")->sessions.f16);
}

TEST(ConfigLoadTest, ThePoolIsANumberOfBytes) {
    EXPECT_EQ(loaded("kv.pool_bytes = 1048576\n")->kv.pool_bytes, 1048576);
}

TEST(ConfigLoadTest, AutoMeansTheDefault) {
    const auto config = loaded(
        "model.path = 'auto'\nipc.endpoint = 'auto'\ncpu.threads = 'auto'\nkv.pool_bytes = 'auto'\n"
        "sampling.temperature = 'auto'\nengine.split = 'auto'\n");
    EXPECT_EQ(config->model.path, "/opt/model.gguf");
    EXPECT_EQ(config->ipc.endpoint, "ipc:///tmp/test.sock");
    EXPECT_EQ(config->cpu.threads, 3);
    EXPECT_FALSE(config->kv.pool_bytes);
    EXPECT_FALSE(config->sampling.temperature);
}

TEST(ConfigLoadTest, SamplingTakesIntegersWhereNumbersAreWanted) {
    const auto config = loaded("sampling = {temperature = 0, top_k = 5, top_p = 1, min_p = 0.25}\n");
    EXPECT_EQ(config->sampling.temperature, 0.0);
    EXPECT_EQ(config->sampling.top_k, 5);
    EXPECT_EQ(config->sampling.top_p, 1.0);
    EXPECT_EQ(config->sampling.min_p, 0.25);
}

TEST(ConfigLoadTest, AdminsAreResolvedToUserNumbers) {
    const auto config = loaded("ipc.admins = ['root', '1234']\n");
    EXPECT_THAT(config->ipc.admin_uids, ElementsAre(0u, 1234u));
}

struct BadFile {
    const char* name;
    const char* text;
    const char* line;  // the one line of the report, or its beginning
};

constexpr BadFile kBadFiles[] = {
    {"syntax", "a = = 1\n", "f.toml:1:5: invalid_argument: "},
    {"unclosed_string", "[model]\npath = \"x\n", "f.toml:2:"},
    {"duplicate", "[kv]\nn_ctx = 32\nn_ctx = 64\n", "f.toml:3:"},
    {"duplicate_across_spellings", "kv.n_ctx = 32\n[kv]\nn_ctx = 64\n", "f.toml:2:"},
    {"engine_table_and_array", "[engine]\nslots = 2\n[[engine]]\nslots = 2\n", "f.toml:3:"},
    {"unknown_key", "[kv]\nn_ctxx = 32\n",
     "f.toml:2:1: invalid_argument: kv.n_ctxx: unknown key; the nearest valid one is kv.n_ctx"},
    {"unknown_dotted_key", "kv.nctx = 32\n",
     "f.toml:1:4: invalid_argument: kv.nctx: unknown key; the nearest valid one is kv.n_ctx"},
    {"hyphen_for_underscore", "[daemon]\ndrain-s = 1\n",
     "f.toml:2:1: invalid_argument: daemon.drain-s: unknown key; the nearest valid one is daemon.drain_s"},
    {"swapped_letters", "[scheduler]\nqueeu = 1\n",
     "f.toml:2:1: invalid_argument: scheduler.queeu: unknown key; the nearest valid one is scheduler.queue"},
    {"unknown_table", "[modle]\npath = 'x'\n",
     "f.toml:1:2: invalid_argument: modle: unknown table; the nearest one is [model]"},
    {"misplaced", "[ipc]\nn_ctx = 32\n",
     "f.toml:2:1: invalid_argument: ipc.n_ctx: misplaced key; it is kv.n_ctx"},
    {"misplaced_at_top", "n_ctx = 32\n",
     "f.toml:1:1: invalid_argument: n_ctx: misplaced key; it is kv.n_ctx"},
    {"table_expected", "kv = 3\n", "f.toml:1:1: invalid_argument: kv: want a table of keys, got an integer"},
    {"array_of_tables_elsewhere", "[[kv]]\nn_ctx = 32\n",
     "f.toml:1:3: invalid_argument: kv: want a table of keys, got an array"},
    {"key_used_as_table", "[kv.n_ctx]\nx = 1\n",
     "f.toml:1:1: invalid_argument: kv.n_ctx: want an integer, got a table"},
    {"string_for_integer", "[kv]\nn_ctx = '32'\n",
     "f.toml:2:9: invalid_argument: kv.n_ctx: want an integer, got a string"},
    {"float_for_integer", "kv.n_ctx = 32.0\n",
     "f.toml:1:12: invalid_argument: kv.n_ctx: want an integer, got a number"},
    {"date_for_integer", "kv.n_ctx = 1979-05-27\n",
     "f.toml:1:12: invalid_argument: kv.n_ctx: want an integer, got a date or time"},
    {"integer_for_string", "model.path = 1\n",
     "f.toml:1:14: invalid_argument: model.path: want a string, got an integer"},
    {"string_for_boolean", "daemon.watch = 'no'\n",
     "f.toml:1:16: invalid_argument: daemon.watch: want a boolean, got a string"},
    {"string_for_array", "engine.dies = 'cpu'\n",
     "f.toml:1:15: invalid_argument: engine.dies: want an array of strings, got a string"},
    {"integer_in_array", "engine.dies = ['cpu', 0]\n",
     "f.toml:1:15: invalid_argument: engine.dies: element 1: want a string, got an integer"},
    {"word_other_than_auto", "cpu.threads = 'all'\n",
     "f.toml:1:15: invalid_argument: cpu.threads: want an integer or \"auto\", got a string"},
    {"too_small", "kv.n_ctx = 15\n",
     "f.toml:1:12: invalid_argument: kv.n_ctx: 15 is out of range: 16 … 262144 tokens"},
    {"too_large", "kv.n_ctx = 262145\n", "f.toml:1:12: invalid_argument: kv.n_ctx: 262145 is out of range"},
    {"negative", "ipc.stall_ms = -1\n", "f.toml:1:16: invalid_argument: ipc.stall_ms: -1 is out of range"},
    {"too_many_slots", "engine.slots = 17\n",
     "f.toml:1:16: invalid_argument: engine.slots: 17 is out of range"},
    {"fraction_out_of_range", "sampling.repeat_penalty = 0.001\n",
     "f.toml:1:27: invalid_argument: sampling.repeat_penalty: 0.001 is out of range: 0.01 … 100"},
    {"not_finite", "sampling.temperature = nan\n",
     "f.toml:1:24: invalid_argument: sampling.temperature: is not finite"},
    {"infinite", "sampling.min_p = inf\n", "f.toml:1:18: invalid_argument: sampling.min_p: is not finite"},
    {"unknown_choice", "log.level = 'verbose'\n",
     "f.toml:1:13: invalid_argument: log.level: \"verbose\" is not one of \"debug\", \"info\", \"warning\", "
     "\"error\", "
     "\"off\""},
    {"empty_model_path", "model.path = ''\n", "f.toml:1:14: invalid_argument: model.path: is empty"},
    {"endpoint_scheme", "ipc.endpoint = '/run/x.sock'\n",
     "f.toml:1:16: invalid_argument: ipc.endpoint: \"/run/x.sock\": want \"ipc://\" and a path"},
    {"endpoint_tcp", "ipc.endpoint = 'tcp://127.0.0.1:1'\n", "f.toml:1:16: unimplemented: ipc.endpoint: "},
    {"no_such_admin", "ipc.admins = ['no such user']\n",
     "f.toml:1:14: invalid_argument: ipc.admins: \"no such user\": no such user on this host"},
    {"no_die", "engine.dies = []\n", "f.toml:1:15: invalid_argument: engine.dies: names no die"},
    {"unknown_die", "engine.dies = ['cpuu']\n",
     "f.toml:1:15: invalid_argument: engine.dies: \"cpuu\" is no die; the nearest one is \"cpu\""},
    {"cuda_die", "engine.dies = ['cuda:0']\n",
     "f.toml:1:15: unimplemented: engine.dies: \"cuda:0\" is not available in this version"},
    {"remote_die", "engine.dies = ['host2:4500/cuda:0']\n", "f.toml:1:15: unimplemented: engine.dies: "},
    {"two_dies", "engine.dies = ['cpu', 'cpu']\n",
     "f.toml:1:15: unimplemented: engine.dies: an engine of 2 dies"},
    {"two_engines", "[[engine]]\n[[engine]]\n", "f.toml:2:1: unimplemented: engine[1]: more than one engine"},
    {"no_engine", "engine = []\n", "f.toml:1:1: invalid_argument: engine: names no engine"},
    {"engine_of_array_in_message", "[[engine]]\nslots = 0\n",
     "f.toml:2:9: invalid_argument: engine[0].slots: 0 is out of range"},
    {"placement_beside_array", "placement.split = 'auto'\n[[engine]]\nslots = 1\n",
     "f.toml:1:11: invalid_argument: placement.split: only without [[engine]]; there the key is "
     "engine.split"},
    {"split_twice", "engine.split = 'auto'\nplacement.split = 'auto'\n",
     "f.toml:2:11: invalid_argument: placement.split: also set as engine.split in line 1; they are the same "
     "key"},
    {"kv_format", "kv.format = 'q5_0'\n", "f.toml:1:13: invalid_argument: kv.format: "},
    {"kv_sink", "kv.sink = -1\n", "f.toml:1:11: invalid_argument: kv.sink: -1 is out of range"},
    {"kv_slide_without_room", "kv.n_ctx = 64\nkv.sink = 64\nkv.overflow = 'slide'\n",
     "f.toml:3:15: invalid_argument: kv.overflow: \"slide\": kv.sink 64 leaves nothing of kv.n_ctx 64"},
    {"pool_bytes", "kv.pool_bytes = 0\n", "f.toml:1:17: invalid_argument: kv.pool_bytes: 0 is out of range"},
    {"split", "engine.split = 20\n",
     "f.toml:1:16: unimplemented: engine.split: 20 needs an engine of two dies"},
    {"placement_split", "placement.split = 20\n", "f.toml:1:19: unimplemented: placement.split: 20 needs"},
    {"multiplex", "engine.multiplex = 'exclusive'\n", "f.toml:1:20: unimplemented: engine.multiplex: "},
    {"sessions_dir", "sessions.dir = 'x'\n",
     "f.toml:1:16: invalid_argument: sessions.dir: \"x\": is not absolute"},
    {"metrics", "metrics.listen = '127.0.0.1:9090'\n", "f.toml:1:18: unimplemented: metrics.listen: "},
    {"watch", "daemon.watch = true\n",
     "f.toml:1:16: unimplemented: daemon.watch: true needs a watch on the file"},
};

TEST(ConfigLoadTest, NamesEachProblemWithItsPlace) {
    for (const BadFile& bad : kBadFiles) {
        SCOPED_TRACE(bad.name);
        const ConfigLoad result = load(bad.text);
        EXPECT_FALSE(result.is_ok());
        EXPECT_EQ(result.problems.size(), 1u) << result.report();
        EXPECT_THAT(result.report(), testing::StartsWith(bad.line));
    }
}

TEST(ConfigLoadTest, ReportsAllProblemsInFileOrder) {
    const ConfigLoad result = load("[log]\nlevel = 3\n[kv]\nn_ctx = 1\nformt = 'f16'\n[zz]\na = 1\n");
    ASSERT_EQ(result.problems.size(), 4u) << result.report();
    EXPECT_EQ(result.problems[0].at.line, 2);
    EXPECT_EQ(result.problems[1].at.line, 4);
    EXPECT_EQ(result.problems[2].at.line, 5);
    EXPECT_EQ(result.problems[3].at.line, 6);
    EXPECT_EQ(result.error().code(), Code::invalid_argument);
    EXPECT_THAT(result.error().message(), HasSubstr("kv.formt"));
}

TEST(ConfigLoadTest, ValuesEqualToTheDefaultOfALaterFeatureAreTaken) {
    loaded(
        "kv.sink = 16\nkv.window = 128\nmetrics.listen = 'off'\nengine.multiplex = "
        "'off'\n");
}

TEST(ConfigLoadTest, ARelativeSocketPathIsRefused) {
    EXPECT_THAT(load("ipc.endpoint = 'ipc://s.sock'\n").report(), HasSubstr("not absolute"));
}

TEST(ConfigLoadTest, ASocketPathTooLongForTheKernelIsRefused) {
    const std::string fits = '/' + std::string(106, 'x');
    EXPECT_TRUE(load("ipc.endpoint = 'ipc://" + fits + "'\n").is_ok());
    EXPECT_THAT(load("ipc.endpoint = 'ipc://" + fits + "x'\n").report(), HasSubstr("108 bytes"));
}

class ConfigFileTest : public testing::Test {
  protected:
    void SetUp() override {
        dir_ = std::filesystem::temp_directory_path() / ("config_file_test." + std::to_string(getpid()));
        std::filesystem::create_directories(dir_);
    }
    void TearDown() override { std::filesystem::remove_all(dir_); }
    std::string write(const std::string& name, const std::string& text) {
        std::ofstream(dir_ / name) << text;
        return dir_ / name;
    }
    std::filesystem::path dir_;
};

TEST_F(ConfigFileTest, ReadsAFile) {
    const ConfigLoad result = load_config(write("a.toml", "kv.n_ctx = 64\n"), test_host());
    ASSERT_TRUE(result.is_ok()) << result.report();
    EXPECT_EQ(result.config->kv.n_ctx, 64);
}

TEST_F(ConfigFileTest, AMissingFileADirectoryAndAHugeFileAreProblems) {
    EXPECT_THAT(load_config(dir_ / "none", test_host()).report(), HasSubstr("none: not_found: "));
    EXPECT_THAT(load_config(dir_, test_host()).report(), HasSubstr("is a directory"));
    EXPECT_THAT(load_config(write("big", std::string((1 << 20) + 1, '#')), test_host()).report(),
                HasSubstr("larger than 1 MiB"));
}

TEST_F(ConfigFileTest, AModelThatIsNotThereIsNamedWithItsPlace) {
    ConfigLoad set = load("[model]\npath = '/nowhere/m.gguf'\n");
    check_model_file(set);
    EXPECT_FALSE(set.is_ok());
    EXPECT_THAT(set.report(), testing::StartsWith("f.toml:2:8: not_found: model.path: /nowhere/m.gguf: "));

    ConfigLoad unset = load("");
    check_model_file(unset);
    EXPECT_THAT(unset.report(), HasSubstr("no embedded model is installed there: set model.path"));

    ConfigLoad there = load("model.path = '" + write("m.gguf", "x") + "'\n");
    check_model_file(there);
    EXPECT_TRUE(there.is_ok()) << there.report();
}

}  // namespace
}  // namespace pantheon::config

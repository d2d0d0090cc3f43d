// The command line: what is understood, what is refused with 2, and the help.
#include "runtime/cli/parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/cli/help_text.h"

namespace pantheon::cli {
namespace {

using testing::HasSubstr;
using Words = std::vector<std::string>;

template <class T>
T parsed(const Words& words) {
    const auto result = parse_command_line(words);
    if (const auto* stop = std::get_if<ParseStop>(&result)) {
        ADD_FAILURE() << stop->text;
        return {};
    }
    const auto* options = std::get_if<T>(&std::get<CommandLine>(result).command);
    EXPECT_NE(options, nullptr);
    return options ? *options : T{};
}

ParseStop stopped(const Words& words) {
    const auto result = parse_command_line(words);
    const auto* stop = std::get_if<ParseStop>(&result);
    EXPECT_NE(stop, nullptr);
    return stop ? *stop : ParseStop{-1, ""};
}

TEST(ParserTest, GenerateTakesItsOptions) {
    const auto plain = parsed<GenerateOptions>({"generate", "-p", "hi"});
    EXPECT_EQ(plain.prompt, "hi");
    EXPECT_FALSE(plain.max_tokens || plain.temperature || plain.seed);
    EXPECT_FALSE(plain.is_raw || plain.no_thinking || plain.as_json);

    const auto full =
        parsed<GenerateOptions>({"generate", "-p", "-x y", "-n", "010", "--temp", "0.5", "--seed",
                                 "18446744073709551615", "--raw", "--no-thinking", "--json"});
    EXPECT_EQ(full.prompt, "-x y");
    EXPECT_EQ(full.max_tokens, 10);  // decimal, never octal
    EXPECT_EQ(full.temperature, 0.5);
    EXPECT_EQ(full.seed, UINT64_MAX);
    EXPECT_TRUE(full.is_raw && full.no_thinking && full.as_json);
}

TEST(ParserTest, RangesOfSamplingAreLeftToTheDaemon) {
    EXPECT_EQ(parsed<GenerateOptions>({"generate", "-p", "x", "--temp", "-5"}).temperature, -5.0);
    EXPECT_EQ(parsed<GenerateOptions>({"generate", "-p", "x", "-n", "0"}).max_tokens, 0);
}

TEST(ParserTest, TheEndpointStandsBeforeOrAfterTheCommand) {
    for (const Words& words :
         {Words{"--endpoint", "ipc:///x", "ping"}, Words{"ping", "--endpoint", "ipc:///x"}}) {
        const auto result = parse_command_line(words);
        ASSERT_TRUE(std::holds_alternative<CommandLine>(result));
        EXPECT_EQ(std::get<CommandLine>(result).endpoint, "ipc:///x");
    }
}

TEST(ParserTest, TextCommandsTakeTheirOptions) {
    const auto tokenize =
        parsed<TokenizeOptions>({"tokenize", "--model", "m.gguf", "--special", "some text"});
    EXPECT_EQ(tokenize.model, "m.gguf");
    EXPECT_TRUE(tokenize.special);
    EXPECT_EQ(tokenize.text, "some text");
    EXPECT_EQ(parsed<TokenizeOptions>({"tokenize", "-"}).text, "-");
    EXPECT_EQ(parsed<TokenizeOptions>({"tokenize", "--", "--special"}).text, "--special");

    EXPECT_EQ(parsed<DetokenizeOptions>({"detokenize", "1", "2", "3"}).ids, (Words{"1", "2", "3"}));
    EXPECT_EQ(parsed<DetokenizeOptions>({"detokenize", "--model", "m", "-"}).ids, Words{"-"});

    const auto chat = parsed<TemplateOptions>({"template", "m.json", "--tools", "t.json", "--no-thinking",
                                               "--no-generation-prompt", "--model", "m"});
    EXPECT_EQ(chat.messages, "m.json");
    EXPECT_EQ(chat.tools, "t.json");
    EXPECT_TRUE(chat.no_thinking && chat.no_generation_prompt);
}

TEST(ParserTest, ScoreTakesItsOptions) {
    const auto plain = parsed<ScoreOptions>({"score", "--model", "m", "--tokens", "t", "--logits", "l"});
    EXPECT_EQ(plain.backend, "ref");
    EXPECT_FALSE(plain.threads || plain.chunk || plain.kv);
    const auto full =
        parsed<ScoreOptions>({"score", "--model", "m", "--tokens", "t", "--logits", "l", "--backend", "cpu",
                              "--threads", "2", "--chunk", "7", "--kv", "f16"});
    EXPECT_EQ(full.backend, "cpu");
    EXPECT_EQ(full.threads, 2);
    EXPECT_EQ(full.chunk, 7);
    EXPECT_EQ(full.kv, "f16");
}

TEST(ParserTest, OtherCommandsAreKnown) {
    EXPECT_TRUE(parsed<StatusOptions>({"status", "--json"}).as_json);
    EXPECT_TRUE(parsed<ReloadOptions>({"reload", "--dry-run"}).is_dry_run);
    EXPECT_EQ(parsed<CancelOptions>({"cancel", "17"}).id, "17");
    EXPECT_EQ(parsed<DrainOptions>({"drain", "--timeout", "1.5"}).timeout_s, 1.5);
    EXPECT_TRUE(parsed<InfoOptions>({"info", "f.gguf", "--json"}).as_json);
    parsed<MetricsOptions>({"metrics"});
    parsed<SessionsOptions>({"sessions"});
}

TEST(ParserTest, WrongUsageStopsWithTwoAndSaysWhy) {
    struct Case {
        Words words;
        const char* says;
    };
    const Case kCases[] = {
        {{}, "a command is missing"},
        {{"genrate"}, "unknown command 'genrate'; the nearest one is 'generate'"},
        {{"--endpoint", "ipc:///x", "statu"}, "unknown command 'statu'; the nearest one is 'status'"},
        {{"--no-such"}, "--no-such"},
        {{"generate"}, "--prompt is required"},
        {{"generate", "-p"}, "--prompt"},
        {{"generate", "-p", "x", "--no-such"}, "--no-such"},
        {{"generate", "-p", "x", "stray"}, "stray"},
        {{"generate", "-p", "x", "-n", "ten"}, "'ten' is no such number"},
        {{"generate", "-p", "x", "-n", "1.5"}, "'1.5' is no such number"},
        {{"generate", "-p", "x", "--temp", "nan"}, "'nan' is no such number"},
        {{"generate", "-p", "x", "--seed", "-1"}, "'-1' is no such number"},
        {{"generate", "-p", "x", "--seed", "18446744073709551616"}, "is no such number"},
        {{"tokenize"}, "TEXT is required"},
        {{"detokenize"}, "IDS is required"},
        {{"template"}, "MESSAGES is required"},
        {{"cancel"}, "ID is required"},
        {{"info"}, "FILE is required"},
        {{"score"}, "is required"},
        {{"score", "--model", "m", "--tokens", "t", "--logits", "l", "--chunk", "0"}, "'0' is less than 1"},
        {{"score", "--model", "m", "--tokens", "t", "--logits", "l", "--threads", "0"}, "'0' is less than 1"},
        {{"score", "--model", "m", "--tokens", "t", "--logits", "l", "--backend", "gpu"}, "gpu"},
        {{"score", "--model", "m", "--tokens", "t", "--logits", "l", "--kv", "f64"}, "f64"},
        {{"status", "ping"}, "ping"},
    };
    for (const Case& c : kCases) {
        SCOPED_TRACE(testing::PrintToString(c.words));
        const ParseStop stop = stopped(c.words);
        EXPECT_EQ(stop.exit_code, 2);
        EXPECT_THAT(stop.text, HasSubstr(c.says));
        EXPECT_THAT(stop.text, HasSubstr("--help'."));
        EXPECT_THAT(stop.text, testing::StartsWith("pantheon"));
    }
}

TEST(ParserTest, TopTakesItsOptions) {
    EXPECT_FALSE(parsed<TopOptions>({"top"}).interval_s || parsed<TopOptions>({"top"}).frames);
    const auto full = parsed<TopOptions>({"top", "--interval", "0.5", "--frames", "3"});
    EXPECT_EQ(full.interval_s, 0.5);
    EXPECT_EQ(full.frames, 3);
    EXPECT_THAT(stopped({"top", "--interval", "0"}).text, HasSubstr("'0' is less than"));
    EXPECT_THAT(stopped({"top", "--frames", "0"}).text, HasSubstr("'0' is less than 1"));
}

TEST(ParserTest, PerplexityTakesItsOptions) {
    const auto plain = parsed<PerplexityOptions>({"perplexity", "--model", "m", "--text", "-"});
    EXPECT_EQ(plain.backend, "cpu");
    EXPECT_EQ(plain.text, "-");
    EXPECT_FALSE(plain.threads || plain.kv || plain.n_ctx || plain.sink || plain.window);
    const auto full = parsed<PerplexityOptions>({"perplexity", "--model", "m", "--text", "t", "--backend",
                                                 "ref", "--threads", "2", "--kv", "f16", "--n-ctx", "512",
                                                 "--sink", "16", "--window", "128"});
    EXPECT_EQ(full.backend, "ref");
    EXPECT_EQ(full.threads, 2);
    EXPECT_EQ(full.kv, "f16");
    EXPECT_EQ(full.n_ctx, 512);
    EXPECT_EQ(full.sink, 16);
    EXPECT_EQ(full.window, 128);
    EXPECT_THAT(stopped({"perplexity", "--model", "m", "--text", "t", "--n-ctx", "1"}).text,
                HasSubstr("'1' is less than 2"));
}

TEST(ParserTest, BenchTakesItsOptions) {
    const auto plain = parsed<BenchOptions>({"bench"});
    EXPECT_EQ(plain.model, "");
    EXPECT_EQ(plain.n_prompt, 512);
    EXPECT_EQ(plain.n_decode, 64);
    EXPECT_THAT(plain.batch, testing::ElementsAre(1, 2, 4, 8, 16));
    EXPECT_THAT(plain.depth, testing::ElementsAre(0, 4096));
    EXPECT_FALSE(plain.threads || plain.kv || plain.as_json);
    const auto full = parsed<BenchOptions>(
        {"bench", "--model",       "m", "-p",        "0", "-n",   "8",   "--batch",  "1,3",  "--depth",
         "7",     "--repetitions", "2", "--threads", "2", "--kv", "f32", "--repack", "none", "--json"});
    EXPECT_EQ(full.model, "m");
    EXPECT_EQ(full.n_prompt, 0);
    EXPECT_EQ(full.n_decode, 8);
    EXPECT_THAT(full.batch, testing::ElementsAre(1, 3));
    EXPECT_THAT(full.depth, testing::ElementsAre(7));
    EXPECT_EQ(full.repetitions, 2);
    EXPECT_EQ(full.threads, 2);
    EXPECT_EQ(full.kv, "f32");
    EXPECT_EQ(full.repack, "none");
    EXPECT_TRUE(full.as_json);
    EXPECT_THAT(stopped({"bench", "--batch", "0"}).text, HasSubstr("--batch"));
    EXPECT_THAT(stopped({"bench", "--depth", "1,x"}).text, HasSubstr("--depth"));
    EXPECT_THAT(stopped({"bench", "--repack", "some"}).text, HasSubstr("--repack"));
}

TEST(ParserTest, EveryCommandHasAManualPage) {
    for (const CommandHelp& help : command_help()) {
        SCOPED_TRACE(help.name);
        Words words;
        if (!help.name.empty()) words.emplace_back(help.name);
        words.emplace_back("--help");
        const ParseStop stop = stopped(words);
        EXPECT_EQ(stop.exit_code, 0);
        for (const char* section : {"NAME\n", "\nSYNOPSIS\n", "\nDESCRIPTION\n", "\nOPTIONS\n",
                                    "\nEXIT STATUS\n", "\nEXAMPLES\n", "\nSEE ALSO\n"})
            EXPECT_THAT(stop.text, HasSubstr(section));
        EXPECT_THAT(stop.text, HasSubstr(std::string(help.summary)));
        const bool asks_a_daemon =
            help.name != "info" && help.name != "score" && help.name != "perplexity" && help.name != "bench";
        EXPECT_EQ(stop.text.find("--endpoint E\n") != std::string::npos, asks_a_daemon) << stop.text;
    }
    EXPECT_THAT(stopped({"generate", "-h"}).text, HasSubstr("-p,--prompt TEXT"));
}

TEST(ParserTest, VersionIsPrinted) {
    const ParseStop stop = stopped({"--version"});
    EXPECT_EQ(stop.exit_code, 0);
    EXPECT_THAT(stop.text, testing::MatchesRegex("pantheon [0-9.]+ \\(protocol 1\\)\n"));
}

}  // namespace
}  // namespace pantheon::cli

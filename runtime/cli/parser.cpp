#include "runtime/cli/parser.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <sstream>

#include "runtime/cli/help_text.h"
#include "runtime/cli/numbers.h"
#include "runtime/config/nearest.h"

namespace pantheon::cli {
namespace {

std::string indented(std::string_view text) {
    std::string out;
    std::istringstream lines{std::string(text)};
    for (std::string line; std::getline(lines, line);) out += line.empty() ? "\n" : "       " + line + "\n";
    return out;
}

/// A manual page: the prose of help_text.h around the options as the parser knows them.
class ManualFormatter : public CLI::Formatter {
  public:
    std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode) const override {
        const bool is_program = app->get_parent() == nullptr;
        const CommandHelp& help = help_of(is_program ? "" : app->get_name());
        std::ostringstream out;
        out << "NAME\n       pantheon" << (is_program ? "" : " ") << help.name << " - " << help.summary
            << "\n\nSYNOPSIS\n"
            << indented(help.synopsis) << "\nDESCRIPTION\n"
            << indented(help.description);
        if (is_program) {
            out << "\nCOMMANDS\n";
            for (const CommandHelp& command : command_help())
                if (!command.name.empty())
                    out << "       " << command.name << std::string(13 - command.name.size(), ' ')
                        << command.summary << "\n";
        }
        out << "\nOPTIONS\n";
        for (const CLI::Option* option : app->get_options()) append_option(out, *option);
        if (!is_program && needs_daemon(*app))
            append_option(out, *app->get_parent()->get_option("--endpoint"));
        out << "\nEXIT STATUS\n" << indented(kExitStatusHelp) << "\nEXAMPLES\n" << indented(help.examples);
        out << "\nSEE ALSO\n       pantheon(1), pantheond(8), pantheond.toml(5)\n";
        return out.str();
    }

  private:
    static bool needs_daemon(const CLI::App& app) {
        static constexpr std::string_view kByThemselves[] = {"info", "score", "perplexity", "bench"};
        return std::ranges::find(kByThemselves, app.get_name()) == std::end(kByThemselves);
    }

    static void append_option(std::ostream& out, const CLI::Option& option) {
        const bool takes_value = option.get_items_expected_max() > 0 && option.nonpositional();
        out << "       " << option.get_name(!option.nonpositional(), true);
        if (takes_value) out << " " << option.get_type_name();
        out << "\n              " << option.get_description() << "\n";
    }
};

/// A number written as a plain decimal: no octal, no hexadecimal, nothing after it. Without `least` its range
/// is the daemon's business, which refuses by the same rule for every client.
template <class T>
CLI::Option* add_number(CLI::App& app, const std::string& names, std::optional<T>& target,
                        const std::string& type, const std::string& help,
                        std::optional<T> least = std::nullopt) {
    const auto store = [&target, names, least](const std::string& text) {
        target = parse_number<T>(text);
        if (!target) throw CLI::ValidationError(names, "'" + text + "' is no such number");
        if (least && *target < *least)
            throw CLI::ValidationError(names, "'" + text + "' is less than " + std::to_string(*least));
    };
    return app.add_option_function<std::string>(names, store, help)->type_name(type);
}

/// One variable a command: the parser writes into all, the chosen one is taken.
struct Targets {
    std::string endpoint;
    GenerateOptions generate;
    ChatOptions chat;
    StatusOptions status;
    TopOptions top;
    CancelOptions cancel;
    DrainOptions drain;
    ReloadOptions reload;
    SessionsOptions sessions;
    TokenizeOptions tokenize;
    DetokenizeOptions detokenize;
    TemplateOptions template_;
    InfoOptions info;
    ScoreOptions score;
    PerplexityOptions perplexity;
    BenchOptions bench;
};

class Parser {
  public:
    Parser() : app_("", "pantheon") {
        app_.formatter(std::make_shared<ManualFormatter>());
        app_.set_help_flag("-h,--help", "print this and exit");
        app_.set_version_flag("--version", "pantheon " PANTHEON_VERSION " (protocol 1)",
                              "print the version and exit");
        app_.add_option("--endpoint", t_.endpoint,
                        "the daemon's socket, such as ipc:///run/pantheon/pantheond.sock")
            ->type_name("E");
        app_.require_subcommand(1);
        app_.fallthrough();
        add_daemon_commands();
        add_text_commands();
        add_file_commands();
        add_bench();
    }

    std::variant<CommandLine, ParseStop> parse(std::vector<std::string> arguments) {
        const std::vector<std::string> words = arguments;
        std::ranges::reverse(arguments);  // as the library wants them
        try {
            app_.parse(std::move(arguments));
        } catch (const CLI::CallForHelp&) {
            const auto chosen = app_.get_subcommands();
            return ParseStop{0, chosen.empty() ? app_.help() : chosen.front()->help()};
        } catch (const CLI::CallForVersion& version) {
            return ParseStop{0, std::string(version.what()) + "\n"};
        } catch (const CLI::ParseError& error) {
            return usage_error(error.what(), words);
        }
        return CommandLine{t_.endpoint, take(app_.get_subcommands().front()->get_name())};
    }

  private:
    CLI::App& add_command(const std::string& name) {
        CLI::App* command = app_.add_subcommand(name, std::string(help_of(name).summary));
        return *command;
    }

    void add_daemon_commands() {
        CLI::App& generate = add_command("generate");
        generate
            .add_option("-p,--prompt", t_.generate.prompt, "the prompt; \"-\" reads it from standard input")
            ->type_name("TEXT")
            ->required();
        add_number<std::int64_t>(generate, "-n,--max-tokens", t_.generate.max_tokens, "N",
                                 "at most N tokens of answer. Default: the daemon's limits.max_tokens");
        add_number<double>(generate, "--temp", t_.generate.temperature, "T",
                           "temperature; 0 takes the most likely token each time. Default: the daemon's");
        add_number<std::uint64_t>(
            generate, "--seed", t_.generate.seed, "S",
            "seed of the draws; the same seed repeats an answer. Default: chosen by the daemon");
        generate.add_flag("--raw", t_.generate.is_raw, "send TEXT as it is, without the chat template");
        generate.add_flag(
            "--no-thinking", t_.generate.no_thinking,
            "answer without reasoning first. Default: as the model's template does; no effect with --raw");
        generate.add_flag("--json", t_.generate.as_json,
                          "print the closing map of the reply, and nothing before it");

        CLI::App& chat = add_command("chat");
        chat.add_option("--system", t_.chat.system, "instructions for the model. Default: none")
            ->type_name("TEXT");
        add_number<std::int64_t>(chat, "-n,--max-tokens", t_.chat.max_tokens, "N",
                                 "at most N tokens an answer. Default: the daemon's limits.max_tokens");
        add_number<double>(chat, "--temp", t_.chat.temperature, "T",
                           "temperature; 0 takes the most likely token each time. Default: the daemon's");
        add_number<std::int64_t>(chat, "--thinking-budget", t_.chat.thinking_budget, "N",
                                 "close the reasoning after N tokens of it. Default: no limit");
        chat.add_flag("--no-thinking", t_.chat.no_thinking,
                      "begin with /think off. Default: as the model's template does");

        add_command("status").add_flag("--json", t_.status.as_json, "print the daemon's reply as JSON");
        CLI::App& top = add_command("top");
        add_number<double>(top, "--interval", t_.top.interval_s, "S", "seconds between two looks. Default: 1",
                           0.1);
        add_number<std::int64_t>(top, "--frames", t_.top.frames, "N", "end after N looks. Default: on Ctrl-C",
                                 1);
        add_command("ping");
        add_command("cancel").add_option("ID", t_.cancel.id, "the request's name")->required();
        add_number<double>(add_command("drain"), "--timeout", t_.drain.timeout_s, "S",
                           "seconds that running requests may take. Default: the daemon's daemon.drain_s");
        add_command("reload").add_flag("--dry-run", t_.reload.is_dry_run,
                                       "say what would change, change nothing");
        add_command("metrics");
        CLI::App& sessions = add_command("sessions");
        sessions.add_flag("--json", t_.sessions.as_json, "print the daemon's reply as JSON");
        sessions.add_flag("--shared", t_.sessions.is_shared, "those that were declared shared");
        sessions.add_option("--drop", t_.sessions.drop, "drop this one instead of listing them")
            ->type_name("NAME");
    }

    void add_model_option(CLI::App& command, std::string& target) {
        command.add_option("--model", target, "use this GGUF file instead of a daemon")->type_name("FILE");
    }

    void add_text_commands() {
        CLI::App& tokenize = add_command("tokenize");
        add_model_option(tokenize, t_.tokenize.model);
        tokenize.add_flag("--special", t_.tokenize.special, "control tokens in the text are tokens");
        tokenize.add_option("TEXT", t_.tokenize.text, "the text; \"-\" reads it from standard input")
            ->required();

        CLI::App& detokenize = add_command("detokenize");
        add_model_option(detokenize, t_.detokenize.model);
        detokenize.add_option("IDS", t_.detokenize.ids, "the ids; \"-\" reads them from standard input")
            ->required();

        CLI::App& chat = add_command("template");
        add_model_option(chat, t_.template_.model);
        chat.add_option("MESSAGES", t_.template_.messages, "a JSON file; \"-\" reads standard input")
            ->required();
        chat.add_option("--tools", t_.template_.tools, "a JSON file with the tools. Default: none")
            ->type_name("FILE");
        chat.add_flag("--no-thinking", t_.template_.no_thinking,
                      "as for an answer without reasoning. Default: as the model's template does");
        chat.add_flag("--no-generation-prompt", t_.template_.no_generation_prompt,
                      "end after the last message instead of where the answer begins");
    }

    void add_file_commands() {
        CLI::App& info = add_command("info");
        info.add_option("FILE", t_.info.file, "the model file")->required();
        info.add_flag("--json", t_.info.as_json, "print JSON");

        CLI::App& score = add_command("score");
        score.add_option("--model", t_.score.model, "the model file")->type_name("FILE")->required();
        score.add_option("--tokens", t_.score.tokens, "the ids; \"-\" reads them from standard input")
            ->type_name("IDS.txt")
            ->required();
        score.add_option("--logits", t_.score.logits, "where the logits go")
            ->type_name("OUT.f32")
            ->required();
        add_run_options(score, t_.score);
        add_number<int>(score, "--chunk", t_.score.chunk, "N",
                        "tokens evaluated at once; 1 is token by token. Default: 64", 1);

        CLI::App& perplexity = add_command("perplexity");
        perplexity.add_option("--model", t_.perplexity.model, "the model file")
            ->type_name("FILE")
            ->required();
        perplexity.add_option("--text", t_.perplexity.text, "the text; \"-\" reads it from standard input")
            ->type_name("FILE")
            ->required();
        add_run_options(perplexity, t_.perplexity);
        add_number<int>(perplexity, "--n-ctx", t_.perplexity.n_ctx, "N",
                        "tokens of the text that are used. Default: 4096", 2);
    }

    void add_bench() {
        CLI::App& bench = add_command("bench");
        bench.add_option("--model", t_.bench.model, "the model file. Default: the embedded model")
            ->type_name("FILE");
        const auto add_int = [&](const char* name, int& target, const char* type, const char* help, int min,
                                 int max) {
            bench.add_option(name, target, help)->type_name(type)->check(CLI::Range(min, max));
        };
        add_int("-p,--prompt", t_.bench.n_prompt, "N", "read a prompt of N tokens; 0: do not. Default: 512",
                0, 262144);
        add_int("-n,--generate", t_.bench.n_decode, "N", "generate N tokens; 0: do not. Default: 64", 0,
                262144);
        bench
            .add_option("--batch", t_.bench.batch,
                        "sequences that generate together, a list. Default: 1,2,4,8,16")
            ->type_name("N,…")
            ->delimiter(',')
            ->check(CLI::Range(1, 64));
        bench
            .add_option("--depth", t_.bench.depth,
                        "tokens that the sequences hold before, a list. Default: 0,4096")
            ->type_name("N,…")
            ->delimiter(',')
            ->check(CLI::Range(0, 262144));
        add_int("--repetitions", t_.bench.repetitions, "N", "times each is measured. Default: 3", 1, 1000);
        add_number<int>(bench, "--threads", t_.bench.threads, "N",
                        "compute threads. Default: the physical cores allowed", 1);
        bench.add_option("--kv", t_.bench.kv, "format of keys and values. Default: f16")
            ->type_name("F")
            ->check(CLI::IsMember({"f32", "f16", "q8_0", "q4_0"}));
        bench
            .add_option(
                "--repack", t_.bench.repack,
                "which weights are packed for faster loops: all, dense (not the routed experts) or none. "
                "Default: auto, as the daemon does")
            ->type_name("WHAT")
            ->check(CLI::IsMember({"auto", "all", "dense", "none"}));
        bench.add_flag("--json", t_.bench.as_json, "print JSON");
    }

    /// How a command computes in this process.
    template <class Options>
    void add_run_options(CLI::App& command, Options& options) {
        command
            .add_option("--backend", options.backend,
                        "ref (exact) or cpu (fast); cuda is not available in this version. Default: " +
                            options.backend)
            ->type_name("B")
            ->check(CLI::IsMember({"ref", "cpu", "cuda"}));
        add_number<int>(command, "--threads", options.threads, "N",
                        "compute threads. Default: the physical cores allowed", 1);
        command
            .add_option("--kv", options.kv,
                        "format of keys and values: f32, f16, q8_0 or q4_0. Default: f32 on ref, f16 on cpu")
            ->type_name("F")
            ->check(CLI::IsMember({"f32", "f16", "q8_0", "q4_0"}));
        add_number<int>(command, "--sink", options.sink, "N",
                        "first rows that --kv q4_0 keeps in f16 as well. Default: 16", 0);
        add_number<int>(command, "--window", options.window, "N",
                        "last rows that --kv q4_0 keeps in f16 as well. Default: 128", 0);
    }

    Command take(const std::string& name) const {
        if (name == "generate") return t_.generate;
        if (name == "chat") return t_.chat;
        if (name == "status") return t_.status;
        if (name == "top") return t_.top;
        if (name == "ping") return PingOptions{};
        if (name == "cancel") return t_.cancel;
        if (name == "drain") return t_.drain;
        if (name == "reload") return t_.reload;
        if (name == "metrics") return MetricsOptions{};
        if (name == "sessions") return t_.sessions;
        if (name == "tokenize") return t_.tokenize;
        if (name == "detokenize") return t_.detokenize;
        if (name == "template") return t_.template_;
        if (name == "info") return t_.info;
        if (name == "perplexity") return t_.perplexity;
        if (name == "bench") return t_.bench;
        return t_.score;
    }

    /// The first word that should have been a command.
    std::string command_word(const std::vector<std::string>& words) const {
        for (std::size_t i = 0; i < words.size(); ++i) {
            if (words[i] == "--endpoint")
                ++i;
            else if (!words[i].starts_with("-"))
                return words[i];
        }
        return {};
    }

    ParseStop usage_error(std::string message, const std::vector<std::string>& words) const {
        const auto chosen = app_.get_subcommands();
        if (chosen.empty()) {
            std::vector<std::string_view> names;
            for (const CommandHelp& help : command_help())
                if (!help.name.empty()) names.push_back(help.name);
            const std::string command = command_word(words);
            if (!command.empty())
                message = "unknown command '" + command + "'; the nearest one is '" +
                          std::string(config::nearest_name(command, names)) + "'";
            else if (!words.empty() && !words[0].starts_with("--endpoint"))
                message = "unknown option '" + words[0] + "'";
            else if (words.size() != 1)
                message = "a command is missing";
        }
        const std::string program = "pantheon" + (chosen.empty() ? "" : " " + chosen.front()->get_name());
        return {2, program + ": " + message + "\nTry '" + program + " --help'.\n"};
    }

    CLI::App app_;
    Targets t_;
};

}  // namespace

std::variant<CommandLine, ParseStop> parse_command_line(std::vector<std::string> arguments) {
    return Parser().parse(std::move(arguments));
}

}  // namespace pantheon::cli

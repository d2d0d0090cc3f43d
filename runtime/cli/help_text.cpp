#include "runtime/cli/help_text.h"

namespace pantheon::cli {
namespace {

constexpr CommandHelp kHelp[] = {
    {"", "talk to pantheond, and work with its model files", "pantheon [--endpoint E] COMMAND [OPTIONS]",
     R"(pantheon is the command-line client of the language model server pantheond. Most commands ask a
running daemon over its socket; info, score and perplexity, and tokenize, detokenize and template with --model,
read a GGUF file themselves and need none.

Results go to standard output, everything else to standard error. Where a command takes "-" it
reads all of standard input. Words after "--" are never options.

Without --endpoint the sockets /run/pantheon/pantheond.sock and $XDG_RUNTIME_DIR/pantheond.sock are tried.)",
     R"(pantheon generate -p 'Why is the sky blue?'
pantheon status
pantheon COMMAND --help)"},

    {"generate", "stream the answer to one prompt",
     "pantheon [--endpoint E] generate -p TEXT [-n N] [--temp T] [--seed S] [--raw] [--no-thinking] [--json]",
     R"(Sends TEXT as one user message and prints the answer while it is made: its content to standard
output, its reasoning to standard error (dim on a terminal). Nothing is added to the content; a
terminal gets a last newline.

Ctrl-C cancels the request, waits for its end and exits with 130; a second Ctrl-C exits at once.

Options that are left out mean the daemon's configured defaults, then those of the model file.)",
     R"(pantheon generate -p 'Name three rivers.' -n 200
pantheon generate -p 'Once upon a time' --raw --temp 0
git diff | pantheon generate -p - --json | jq .usage)"},

    {"chat", "a conversation in the terminal",
     "pantheon [--endpoint E] chat [--system TEXT] [-n N] [--temp T] [--thinking-budget N] [--no-thinking]",
     R"(Sends each line with the conversation so far and prints the answer while it is made; reasoning is
dim. Lines can be edited and are remembered ($XDG_STATE_HOME/pantheon/chat_history, for you only). A
line that ends with a backslash goes on in the next one; """ opens and closes a text of several lines.

/think on|off  /system TEXT  /clear  /stats  /help  /quit

Ctrl-C cancels the answer that is being made, a second one leaves; at the prompt it drops the line,
and leaves if that is empty. Ctrl-D leaves.

Without a terminal the lines of standard input are sent one after the other.)",
     R"(pantheon chat
pantheon chat --system 'Answer in one sentence.' --thinking-budget 300)"},

    {"status", "what the daemon is doing", "pantheon [--endpoint E] status [--json]",
     R"(Prints the daemon's state, model, engines, memory and counters, and this user's own requests.)",
     R"(pantheon status
pantheon status --json | jq .engines[0].slots)"},

    {"top", "the daemon's state, again and again", "pantheon [--endpoint E] top [--interval S] [--frames N]",
     R"(Shows slots, queue, memory and cache of a daemon and this user's own requests, with the tokens per second
since the last look, until Ctrl-C. On a terminal each look replaces the one before; else they follow one
another with an empty line between.)",
     R"(pantheon top
pantheon top --frames 1 | head -3)"},

    {"ping", "check that the daemon answers", "pantheon [--endpoint E] ping",
     R"(Prints the endpoint that answered and the time of one round trip.)", "pantheon ping && echo up"},

    {"cancel", "cancel a running request", "pantheon [--endpoint E] cancel ID",
     R"(Cancels the request that its client named ID; decimal digits are taken as a number. A client sees
its own requests only. Exits with 1 when there is no such request.)",
     "pantheon cancel 17"},

    {"drain", "let running requests finish and take no new ones",
     "pantheon [--endpoint E] drain [--timeout S]",
     R"(For administrators of the daemon. Prints the daemon's answer, or its typed refusal.)",
     "pantheon drain --timeout 60"},

    {"reload", "apply the daemon's configuration file again", "pantheon [--endpoint E] reload [--dry-run]",
     R"(For administrators of the daemon. Reads and checks the whole file, then applies every key that can
change while it runs, or nothing. Prints what was applied and what waits for a restart. A broken file
is reported with line and column of every problem; then nothing has changed, and the exit code is 1.)",
     "pantheon reload --dry-run"},

    {"metrics", "the daemon's counters", "pantheon [--endpoint E] metrics",
     R"(Prints the daemon's counters in the text format of Prometheus.)", "pantheon metrics"},

    {"sessions", "this user's stored sessions",
     "pantheon [--endpoint E] sessions [--json] [--shared] [--drop NAME]",
     R"(Lists the states that requests have named, with their lengths and the memory they hold, or drops one.)",
     R"(pantheon sessions
pantheon sessions --drop talk)"},

    {"tokenize", "text to token ids", "pantheon [--endpoint E] tokenize [--model FILE] [--special] TEXT|-",
     R"(Prints the ids of TEXT on one line, separated by spaces. Control tokens such as <|im_end|> are
taken as plain text unless --special is given.

Bytes that are not UTF-8 count as U+FFFD, one for each byte.)",
     R"(pantheon tokenize 'Hello, world'
pantheon tokenize --model model.gguf --special - < prompt.txt)"},

    {"detokenize", "token ids to bytes", "pantheon [--endpoint E] detokenize [--model FILE] IDS...|-",
     R"(Prints the exact bytes of the tokens, control tokens included, and nothing else: no newline, and no
repair of incomplete UTF-8. Ids are decimals separated by white space.)",
     R"(pantheon detokenize 9707 11 1879
pantheon tokenize 'any text' | pantheon detokenize -)"},

    {"template", "the prompt that a conversation becomes",
     "pantheon [--endpoint E] template [--model FILE] MESSAGES.json|- [--tools FILE] [--no-thinking]\n"
     "    [--no-generation-prompt]",
     R"(Prints exactly the text that the model would be given for a conversation: no newline is added.
MESSAGES.json holds an array of messages in OpenAI form, FILE an array of OpenAI tool objects.)",
     R"(echo '[{"role": "user", "content": "Hi"}]' | pantheon template -
pantheon template --model model.gguf chat.json --tools tools.json --no-thinking)"},

    {"info", "what a GGUF file holds", "pantheon info FILE.gguf [--json]",
     R"(Prints the metadata and tensors of a model file; any shard's path opens a split set. Needs no
daemon.

With --json: a map of arch, kv (all metadata), tensors (each with name, type, ne, offset, bytes and
file; offset counts from the start of that file) and types (the number of tensors of each type).)",
     R"(pantheon info model.gguf
pantheon info model.gguf --json | jq .types)"},

    {"score", "the logits of a token sequence",
     "pantheon score --model FILE --tokens IDS.txt --logits OUT.f32 [--backend ref|cpu] [--threads N]\n"
     "    [--chunk N] [--kv f32|f16|q8_0|q4_0] [--sink N] [--window N]",
     R"(Evaluates a sequence and writes the raw logits after each of its tokens. Needs no daemon.

IDS.txt holds decimals separated by white space. OUT.f32 is little-endian f32, [n_tokens][n_vocab]:
row t has the logits after token t. The file appears complete or not at all.

The backend ref is exact: weights are dequantised to f32 and activations are never quantised. Its
logits do not depend on --threads or --chunk, to the bit. The backend cpu computes as the daemon does:
quantised activations, the same bits for every --threads and --chunk.)",
     R"(pantheon tokenize --model model.gguf 'Hello' > ids.txt
pantheon score --model model.gguf --tokens ids.txt --logits out.f32)"},

    {"perplexity", "how well a model predicts a text",
     "pantheon perplexity --model FILE --text FILE [--backend ref|cpu] [--threads N] [--n-ctx N]\n"
     "    [--kv f32|f16|q8_0|q4_0] [--sink N] [--window N]",
     R"(Prints the perplexity of the model on a text: exp of the mean negative log-likelihood of its tokens,
the first one left out, each predicted from all before it. The text is taken literally (no template, no
control tokens); of a longer one the first --n-ctx tokens are used. Needs no daemon.

The figure after ± is the standard error of the mean. With the backend cpu, the default, the model is run
as the daemon runs it except for --kv, which is f16 unless given; ref is exact and slow.)",
     R"(pantheon perplexity --model model.gguf --text novel.txt
pantheon perplexity --model model.gguf --text - --n-ctx 512 < novel.txt)"},

    {"bench", "how fast a model runs here",
     "pantheon bench [--model FILE] [-p N] [-n N] [--batch N,…] [--depth N,…] [--repetitions N] [--threads "
     "N]\n"
     "    [--kv f32|f16|q8_0|q4_0] [--repack auto|all|dense|none] [--json]",
     R"(Reads a prompt (pp) and generates with one or several sequences at once (tg), after each of the depths,
in this process: no daemon is asked, and one that runs on the same cores disturbs. Prints tokens a second,
the median of the repetitions between the slowest and the fastest, and what that takes of the memory: the
bytes that the tokens need at least by the tensors of the file, beside what the threads can read.

Text does not matter for the time; the tokens hit the experts about as evenly as by chance, which is the
worst case for a batch. With --json: a map of model, backend, isa, threads, repack, kv and rows, each with
test, n, batch, depth, tps, min, max and gbps.)",
     R"(pantheon bench
pantheon bench --model model.gguf -p 512 -n 64 --batch 1,8 --depth 0 --json)"},
};

}  // namespace

const std::string_view kExitStatusHelp =
    R"(0    done
1    the daemon or the model said no, or the result could not be written
2    usage: the command line, or a file that it names as input, makes no sense
3    no daemon could be reached
130  ended by Ctrl-C)";

std::span<const CommandHelp> command_help() {
    return kHelp;
}

const CommandHelp& help_of(std::string_view name) {
    for (const CommandHelp& help : kHelp)
        if (help.name == name) return help;
    return kHelp[0];
}

}  // namespace pantheon::cli

#include "actors/prepare.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "actors/cache/checkpoint_marks.h"
#include "model/tokenizer/utf8.h"

namespace pantheon::actors {
namespace {

/// How the template writes the end of the reasoning of an earlier turn.
constexpr std::string_view kReasoningClose = "\n</think>\n\n";

Error invalid(std::string message) {
    return {Code::invalid_argument, std::move(message)};
}

std::uint64_t random_seed() {
    std::random_device device;
    return (static_cast<std::uint64_t>(device()) << 32) | device();
}

Status check_ids(const std::vector<TokenId>& tokens, const TextModel& text) {
    const std::int32_t n_vocab = text.tokenizer->n_vocab();
    for (std::size_t i = 0; i < tokens.size(); ++i)
        if (tokens[i] < 0 || tokens[i] >= n_vocab)
            return invalid("tokens[" + std::to_string(i) + "]: " + std::to_string(tokens[i]) +
                           " is not in the vocabulary of " + std::to_string(n_vocab));
    return {};
}

Status check_fits(std::size_t n_prompt, const Limits& limits) {
    if (n_prompt == 0) return invalid("the prompt is empty: at least one token is needed");
    if (n_prompt > static_cast<std::size_t>(limits.n_ctx))
        return invalid("the prompt has " + std::to_string(n_prompt) +
                       " tokens, the context (kv.n_ctx) holds " + std::to_string(limits.n_ctx));
    return {};
}

/// Text and ids of a conversation; sets where generation starts.
Result<model::RenderedPrompt> render(const Json& messages, const Json& tools, std::optional<bool> thinking,
                                     bool add_generation_prompt, const TextModel& text) {
    model::TemplateOptions options;
    options.family = text.family;
    options.thinking = thinking;
    options.add_generation_prompt = add_generation_prompt;
    return model::render_chat(messages, tools, options);
}

Result<model::SamplingParams> resolve_sampling(const SamplingRequest& request, const TextModel& text) {
    const SamplingDefaults& defaults = text.sampling;
    model::SamplingParams params;
    params.temperature = static_cast<float>(request.temperature.value_or(defaults.temperature));
    params.top_p = static_cast<float>(request.top_p.value_or(defaults.top_p));
    params.min_p = static_cast<float>(request.min_p.value_or(defaults.min_p));
    params.repeat_penalty = static_cast<float>(request.repeat_penalty.value_or(defaults.repeat_penalty));
    params.presence_penalty =
        static_cast<float>(request.presence_penalty.value_or(defaults.presence_penalty));
    params.frequency_penalty =
        static_cast<float>(request.frequency_penalty.value_or(defaults.frequency_penalty));
    const std::int64_t top_k = request.top_k.value_or(defaults.top_k);
    if (top_k < 0 || top_k > INT32_MAX)
        return invalid("top_k: " + std::to_string(top_k) + " is out of range");
    params.top_k = static_cast<std::int32_t>(top_k);
    params.logit_bias = request.logit_bias;
    params.seed = request.seed ? *request.seed : random_seed();
    if (Status status = model::validate(params, text.tokenizer->n_vocab()); !status)
        return std::move(status).error();
    return params;
}

}  // namespace

Result<Prepared> prepare_generate(const GenerateRequest& request, const TextModel& text, const Limits& limits,
                                  Clock::time_point received) {
    if (request.session && request.cache == CacheMode::off)
        return invalid("session: keeps a state, which cache = \"off\" forbids");
    if (request.logprobs && !request.stream)
        return invalid("logprobs: come with token events, which need stream = true");

    Prepared prepared;
    if (const auto* prompt = std::get_if<std::string>(&request.input)) {
        prepared.prompt = text.tokenizer->encode(*prompt, /*special=*/false);
    } else if (const auto* tokens = std::get_if<std::vector<TokenId>>(&request.input)) {
        if (Status status = check_ids(*tokens, text); !status) return std::move(status).error();
        prepared.prompt = *tokens;
    } else {
        auto rendered = render(std::get<Json>(request.input), request.tools, request.thinking, true, text);
        if (!rendered) return std::move(rendered).error();
        prepared.prompt = text.tokenizer->encode(rendered->text, rendered->trusted);
        prepared.parser.starts_in_reasoning = rendered->starts_in_reasoning;
        if (request.tools.is_array() && !request.tools.empty()) {
            prepared.parser.parse_tool_calls = true;
            prepared.parser.tools_json = request.tools.dump();
        }
    }
    if (!std::holds_alternative<Json>(request.input)) {
        if (!request.tools.is_null()) return invalid("tools: need messages");
        if (request.thinking) return invalid("thinking: needs messages");
        if (request.thinking_budget) return invalid("thinking_budget: needs messages");
    }
    if (request.thinking_budget && *request.thinking_budget < 0)
        return invalid("thinking_budget: " + std::to_string(*request.thinking_budget) + " is negative");
    if (request.thinking_budget && prepared.parser.starts_in_reasoning) {
        prepared.thinking_budget = request.thinking_budget;
        prepared.reasoning_close = text.tokenizer->encode(kReasoningClose, /*special=*/true);
    }
    if (Status status = check_fits(prepared.prompt.size(), limits); !status) return std::move(status).error();

    const std::int64_t asked = request.max_tokens.value_or(limits.max_tokens);
    if (asked < 1) return invalid("max_tokens: " + std::to_string(asked) + " is less than 1");
    // The last token drawn is never fed, so one more than the free rows can follow.
    const std::int64_t room = limits.n_ctx - static_cast<std::int64_t>(prepared.prompt.size()) + 1;
    prepared.max_tokens = std::min(asked, limits.max_tokens);
    if (!limits.slides) prepared.max_tokens = std::min(prepared.max_tokens, room);

    auto sampling = resolve_sampling(request.sampling, text);
    if (!sampling) return std::move(sampling).error();
    prepared.sampling = *std::move(sampling);

    for (std::size_t i = 0; i < request.stop.size(); ++i)
        if (request.stop[i].empty()) return invalid("stop[" + std::to_string(i) + "]: is empty");
    prepared.parser.stop = request.stop;
    prepared.stream = request.stream;
    prepared.cache = request.cache;
    prepared.session = request.session;
    prepared.message_ends = message_ends(prepared.prompt, text.tokenizer->find(kMessageStart));
    prepared.n_top = request.logprobs.value_or(-1);
    prepared.priority = request.priority;
    if (request.credit && *request.credit < 0) return invalid("credit: is negative");
    prepared.credit = request.credit;
    if (request.deadline_ms) {
        constexpr std::int64_t kLongest = 30LL * 24 * 3600 * 1000;
        if (*request.deadline_ms < 1 || *request.deadline_ms > kLongest)
            return invalid("deadline_ms: " + std::to_string(*request.deadline_ms) + " is not in 1 … " +
                           std::to_string(kLongest));
        prepared.deadline = received + std::chrono::milliseconds(*request.deadline_ms);
    }
    return prepared;
}

Result<Prepared> prepare_score(const ScoreRequest& request, const TextModel& text, const Limits& limits) {
    Prepared prepared;
    prepared.kind = Prepared::Kind::score;
    if (Status status = check_ids(request.tokens, text); !status) return std::move(status).error();
    if (Status status = check_fits(request.tokens.size(), limits); !status) return std::move(status).error();
    prepared.prompt = request.tokens;
    prepared.n_top = request.top;
    return prepared;
}

Result<Json> run_tokenize(const TokenizeRequest& request, const TextModel& text) {
    return Json{{"tokens", text.tokenizer->encode(request.text, request.special)}};
}

Result<Json> run_detokenize(const DetokenizeRequest& request, const TextModel& text) {
    if (Status status = check_ids(request.tokens, text); !status) return std::move(status).error();
    const std::string bytes = text.tokenizer->decode(request.tokens, request.special);
    Json result = Json::object();
    result["bytes"] = Json::binary({bytes.begin(), bytes.end()});
    result["text"] = model::to_valid_utf8(bytes);
    return result;
}

Result<Json> run_template(const TemplateRequest& request, const TextModel& text) {
    auto rendered =
        render(request.messages, request.tools, request.thinking, request.add_generation_prompt, text);
    if (!rendered) return std::move(rendered).error();
    Json result = Json::object();
    result["text"] = rendered->text;
    result["tokens"] = text.tokenizer->encode(rendered->text, rendered->trusted);
    return result;
}

}  // namespace pantheon::actors

// `tokenize`, `detokenize` and `template`: of a daemon, or of a model file.
#include <nlohmann/json.hpp>

#include "runtime/cli/commands.h"
#include "runtime/cli/console.h"
#include "runtime/cli/daemon_call.h"
#include "runtime/cli/local_model.h"
#include "runtime/cli/numbers.h"
#include "runtime/cli/utf8_repair.h"

namespace pantheon::cli {
namespace {

int refuse(const Error& error) {
    complain(error.to_string());
    return kRefused;
}

int misuse(const Error& error) {
    complain(error.message());
    return kUsage;
}

int print(std::string_view text) {
    if (write_out(text)) return kDone;
    complain("standard output cannot be written");
    return kRefused;
}

int print_ids(const std::vector<TokenId>& ids) {
    std::string line;
    for (const TokenId id : ids) {
        if (!line.empty()) line += ' ';
        line += std::to_string(id);
    }
    return print(line + '\n');
}

int malformed_answer(const char* field) {
    complain(std::string("data_loss: the daemon's answer has no ") + field);
    return kUnreachable;
}

Result<Json> read_json_array(const std::string& path) {
    auto text = read_input(path);
    if (!text) return std::move(text).error();
    const std::string name = path == "-" ? "standard input" : path;
    try {
        Json value = Json::parse(*text);
        if (value.is_array()) return value;
    } catch (const Json::exception& error) {
        return Error(Code::invalid_argument, name + ": " + error.what());
    }
    return Error(Code::invalid_argument, name + ": want a JSON array");
}

int detokenize_locally(const std::string& model, const std::vector<TokenId>& ids) {
    const auto file = open_model(model);
    if (!file) return refuse(file.error());
    const auto tokenizer = load_tokenizer(**file);
    if (!tokenizer) return refuse(tokenizer.error());
    const std::int32_t n_vocab = (*tokenizer)->n_vocab();
    for (const TokenId id : ids)
        if (id >= n_vocab)
            return refuse(Error(Code::invalid_argument, "token " + std::to_string(id) +
                                                            ": the vocabulary has " +
                                                            std::to_string(n_vocab) + " entries"));
    return print((*tokenizer)->decode(ids, true));
}

int render_locally(const TemplateOptions& options, const Json& messages, const Json& tools) {
    const auto file = open_model(options.model);
    if (!file) return refuse(file.error());
    model::TemplateOptions how;
    how.family = template_family(**file);
    if (options.no_thinking) how.thinking = false;
    how.add_generation_prompt = !options.no_generation_prompt;
    const auto prompt = model::render_chat(messages, tools, how);
    if (!prompt) return refuse(prompt.error());
    return print(prompt->text);
}

}  // namespace

int run_tokenize(const TokenizeOptions& options, const std::string& endpoint) {
    std::string text = options.text;
    if (text == "-") {
        auto input = read_stdin();
        if (!input) return misuse(input.error());
        text = *std::move(input);
    }
    if (!options.model.empty()) {
        const auto file = open_model(options.model);
        if (!file) return refuse(file.error());
        const auto tokenizer = load_tokenizer(**file);
        if (!tokenizer) return refuse(tokenizer.error());
        return print_ids((*tokenizer)->encode(text, options.special));
    }
    const auto answer = ask_daemon(endpoint, TokenizeRequest{repair_utf8(text), options.special});
    if (const int* code = std::get_if<int>(&answer)) return *code;
    const auto& result = std::get<Json>(answer);
    const auto tokens = result.find("tokens");
    if (tokens == result.end() || !tokens->is_array()) return malformed_answer("tokens");
    std::vector<TokenId> ids;
    for (const Json& id : *tokens) {
        if (!id.is_number_integer()) return malformed_answer("tokens");
        ids.push_back(id.get<TokenId>());
    }
    return print_ids(ids);
}

int run_detokenize(const DetokenizeOptions& options, const std::string& endpoint) {
    std::string text;
    if (options.ids.size() == 1 && options.ids[0] == "-") {
        auto input = read_stdin();
        if (!input) return misuse(input.error());
        text = *std::move(input);
    } else {
        for (const std::string& word : options.ids) text.append(word).append(" ");
    }
    auto ids = parse_token_ids(text);
    if (!ids) return misuse(ids.error());
    if (!options.model.empty()) return detokenize_locally(options.model, *ids);

    const auto answer = ask_daemon(endpoint, DetokenizeRequest{*std::move(ids), true});
    if (const int* code = std::get_if<int>(&answer)) return *code;
    const auto& result = std::get<Json>(answer);
    const auto bytes = result.find("bytes");
    if (bytes == result.end() || !bytes->is_binary()) return malformed_answer("bytes");
    const auto& binary = bytes->get_binary();
    return print({reinterpret_cast<const char*>(binary.data()), binary.size()});
}

int run_template(const TemplateOptions& options, const std::string& endpoint) {
    auto messages = read_json_array(options.messages);
    if (!messages) return misuse(messages.error());
    Json tools;
    if (!options.tools.empty()) {
        auto read = read_json_array(options.tools);
        if (!read) return misuse(read.error());
        tools = *std::move(read);
    }
    if (!options.model.empty()) return render_locally(options, *messages, tools);

    TemplateRequest request;
    request.messages = *std::move(messages);
    request.tools = std::move(tools);
    if (options.no_thinking) request.thinking = false;
    request.add_generation_prompt = !options.no_generation_prompt;
    const auto answer = ask_daemon(endpoint, request);
    if (const int* code = std::get_if<int>(&answer)) return *code;
    const auto& result = std::get<Json>(answer);
    const auto text = result.find("text");
    if (text == result.end() || !text->is_string()) return malformed_answer("text");
    return print(text->get<std::string>());
}

}  // namespace pantheon::cli

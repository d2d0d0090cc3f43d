// Reads the vocabulary of a Hugging Face tokenizer.json.
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tests/tools/make_model/vocabulary.h"

namespace pantheon::test {
namespace {

constexpr std::size_t kMaxTokens = 1u << 22;

/// Merges are "left right" or ["left", "right"], depending on the version that wrote them.
std::string merge_text(const nlohmann::json& merge) {
    if (merge.is_string()) return merge.get<std::string>();
    return merge.at(0).get<std::string>() + " " + merge.at(1).get<std::string>();
}

/// The type a token of this family has, by text; otherwise what the file says about it.
TokenType added_type(const std::string& text, bool is_special) {
    for (const SpecialToken& token : special_tokens())
        if (text == token.text) return token.type;
    return is_special ? TokenType::control : TokenType::user_defined;
}

void put(Vocabulary& vocabulary, std::size_t id, std::string text, TokenType type) {
    if (id >= kMaxTokens) throw std::runtime_error("token id " + std::to_string(id) + " is out of range");
    vocabulary.pad_to(id + 1);
    vocabulary.tokens[id] = std::move(text);
    vocabulary.types[id] = static_cast<std::int32_t>(type);
}

}  // namespace

Vocabulary read_tokenizer_json(const std::string& path, std::size_t n_tokens) try {
    std::ifstream in(path, std::ios::binary);
    if (!in) throw std::runtime_error("cannot be opened");
    const nlohmann::json json = nlohmann::json::parse(in);
    const nlohmann::json& model = json.at("model");
    Vocabulary vocabulary;
    for (const auto& [text, id] : model.at("vocab").items())
        put(vocabulary, id.get<std::size_t>(), text, TokenType::normal);
    if (json.contains("added_tokens")) {
        for (const nlohmann::json& token : json.at("added_tokens")) {
            const auto text = token.at("content").get<std::string>();
            put(vocabulary, token.at("id").get<std::size_t>(), text,
                added_type(text, token.value("special", false)));
        }
    }
    for (const nlohmann::json& merge : model.at("merges")) vocabulary.merges.push_back(merge_text(merge));
    if (n_tokens != 0 && n_tokens < vocabulary.tokens.size())
        throw std::runtime_error("holds " + std::to_string(vocabulary.tokens.size()) +
                                 " tokens, --vocab is smaller");
    vocabulary.pad_to(n_tokens);
    return vocabulary;
} catch (const std::exception& e) {
    throw std::runtime_error(path + ": " + e.what());
}

}  // namespace pantheon::test

#include "runtime/cli/local_model.h"

#include "runtime/cli/console.h"

namespace pantheon::cli {

Result<std::shared_ptr<const model::GgufFile>> open_model(const std::string& path) {
    return model::GgufFile::open(path);
}

Result<std::shared_ptr<const model::Tokenizer>> load_tokenizer(const model::GgufFile& file) {
    std::int64_t n_rows = 0;
    if (const model::GgufTensor* embedding = file.find_tensor("token_embd.weight")) {
        n_rows = embedding->ne[1];
    } else {
        const auto tokens = file.metadata().get_string_array("tokenizer.ggml.tokens");
        if (!tokens) return tokens.error().with_context(file.path());
        if (*tokens != nullptr) n_rows = static_cast<std::int64_t>((*tokens)->size());
    }
    auto tokenizer = model::Tokenizer::load(file.metadata(), n_rows);
    if (!tokenizer) return std::move(tokenizer).error().with_context(file.path());
    return tokenizer;
}

model::TemplateFamily template_family(const model::GgufFile& file) {
    const auto source = file.metadata().get_string("tokenizer.chat_template");
    const bool is_there = source.has_value() && source->has_value();
    const model::TemplateChoice choice = model::choose_template(is_there ? **source : std::string_view{});
    if (!choice.is_known)
        complain("warning: the file's chat template is unknown; the Qwen3.5 rules are used");
    return choice.family;
}

}  // namespace pantheon::cli

// The text side of a model file, for the commands that need no daemon.
#pragma once

#include <memory>
#include <string>

#include "model/chat/chat_template.h"
#include "model/gguf/gguf_file.h"
#include "model/tokenizer/tokenizer.h"
#include "runtime/base/status.h"

namespace pantheon::cli {

Result<std::shared_ptr<const model::GgufFile>> open_model(const std::string& path);

/// A file without an embedding (a bare vocabulary) is taken too.
Result<std::shared_ptr<const model::Tokenizer>> load_tokenizer(const model::GgufFile& file);

/// By the file's tokenizer.chat_template; complains once when no family is recognised.
model::TemplateFamily template_family(const model::GgufFile& file);

}  // namespace pantheon::cli

#include "runtime/cli/utf8_repair.h"

#include "model/tokenizer/utf8.h"

namespace pantheon::cli {

std::string repair_utf8(std::string_view bytes) {
    // The tokenizer's reading lets surrogates stand, since it works on bytes; the protocol cannot carry them.
    return model::to_valid_utf8(model::lenient_utf8(bytes));
}

}  // namespace pantheon::cli

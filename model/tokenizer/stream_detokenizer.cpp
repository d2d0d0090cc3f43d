#include "model/tokenizer/stream_detokenizer.h"

#include "model/tokenizer/utf8.h"

namespace pantheon::model {

std::string StreamDetokenizer::push(std::string_view bytes) {
    held_ += bytes;
    std::string_view rest = held_;
    std::string out;
    while (!rest.empty()) {
        const std::size_t n_valid = valid_utf8_prefix(rest);
        out += rest.substr(0, n_valid);
        rest.remove_prefix(n_valid);
        if (rest.empty()) break;
        std::size_t n_bytes;
        if (utf8_step(rest, n_bytes) == Utf8Step::unfinished) break;
        out += kReplacementCharacter;
        rest.remove_prefix(1);
    }
    held_.erase(0, held_.size() - rest.size());
    return out;
}

std::string StreamDetokenizer::flush() {
    std::string out = to_valid_utf8(held_);
    held_.clear();
    return out;
}

}  // namespace pantheon::model

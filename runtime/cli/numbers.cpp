#include "runtime/cli/numbers.h"

namespace pantheon::cli {

Result<std::vector<TokenId>> parse_token_ids(std::string_view text) {
    constexpr std::string_view kSpace = " \t\r\n\f\v";
    std::vector<TokenId> ids;
    for (std::size_t begin = text.find_first_not_of(kSpace); begin != std::string_view::npos;) {
        const std::size_t end = text.find_first_of(kSpace, begin);
        const std::string_view word = text.substr(begin, end == std::string_view::npos ? end : end - begin);
        const auto id = parse_number<TokenId>(word);
        if (!id || *id < 0) {
            constexpr std::size_t kShown = 40;
            std::string message = "word ";
            message.append(std::to_string(ids.size() + 1))
                .append(" is no token id: ")
                .append(word.substr(0, kShown));
            return Error(Code::invalid_argument, std::move(message));
        }
        ids.push_back(*id);
        begin = text.find_first_not_of(kSpace, end);
    }
    return ids;
}

}  // namespace pantheon::cli

#include "actors/cache/checkpoint_marks.h"

#include <algorithm>

namespace pantheon::actors {

std::vector<std::int64_t> message_ends(std::span<const TokenId> prompt, TokenId message_start) {
    std::vector<std::int64_t> ends;
    for (std::size_t i = 1; i < prompt.size(); ++i)
        if (prompt[i] == message_start) ends.push_back(static_cast<std::int64_t>(i));
    return ends;
}

std::vector<std::int64_t> checkpoint_marks(const PromptShape& prompt, std::int64_t every) {
    constexpr std::int64_t kNearby = 16;  // tokens; as cheap to evaluate again as to keep
    const std::int64_t n = prompt.n_tokens;
    std::vector<std::int64_t> marks = prompt.message_ends;
    if (every > 0)
        for (std::int64_t p = (prompt.n_cached / every + 1) * every; p <= n; p += every) marks.push_back(p);
    marks.push_back(n);
    const bool is_repeated = prompt.n_shared >= n - 1;
    const bool has_end_nearby = !prompt.message_ends.empty() && n - prompt.message_ends.back() <= kNearby;
    if ((n >= kLongPrompt || is_repeated) && !has_end_nearby) marks.push_back(n - 1);
    // A prompt that has been seen whole leaves nothing.
    if (prompt.n_shared < n) marks.push_back(prompt.n_shared);
    std::sort(marks.begin(), marks.end());
    marks.erase(std::unique(marks.begin(), marks.end()), marks.end());
    marks.erase(marks.begin(), std::upper_bound(marks.begin(), marks.end(), prompt.n_cached));
    return marks;
}

}  // namespace pantheon::actors

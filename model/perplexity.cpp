#include "model/perplexity.h"

#include <cmath>

#include "model/sampler/sampler.h"
#include "model/score.h"

namespace pantheon::model {

Result<Perplexity> perplexity(Executor& executor, SlotId slot, std::span<const TokenId> ids,
                              std::int64_t n_vocab, int chunk,
                              const std::function<Status(std::int64_t n_tokens)>& advance) {
    if (ids.size() < 2) return Error(Code::invalid_argument, "text: one token or none; two are needed");
    double sum = 0, sum_of_squares = 0;
    std::size_t t = 0;  // of the row's token; the row predicts the one after it
    const auto add_rows = [&](const StepLogits& rows) -> Status {
        for (std::int64_t r = 0; r < rows.n_rows; ++r, ++t) {
            if (t + 1 == ids.size()) break;
            const double nll = -raw_logprob(rows.row(r), ids[t + 1]);
            if (!std::isfinite(nll))
                return Error(Code::data_loss, "logits at position " + std::to_string(t) + " are not finite");
            sum += nll;
            sum_of_squares += nll * nll;
        }
        return advance(rows.n_rows);
    };
    if (Status ok = score(executor, slot, ids, n_vocab, chunk, add_rows); !ok) return std::move(ok).error();

    Perplexity result;
    result.n_predicted = static_cast<std::int64_t>(ids.size()) - 1;
    const auto n = static_cast<double>(result.n_predicted);
    result.mean_nll = sum / n;
    result.value = std::exp(result.mean_nll);
    const double variance = std::max(0.0, sum_of_squares / n - result.mean_nll * result.mean_nll);
    result.error = n > 1 ? std::sqrt(variance / (n - 1)) : 0;
    return result;
}

}  // namespace pantheon::model
